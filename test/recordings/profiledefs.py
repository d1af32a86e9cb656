"""Definitions of the profiles (see profiles.py and README.md): plain data.

flags: on top of the usual ones; None leaves one out, a list repeats it.  files: written below ${dir}.
Placeholders: ${dir}, ${pki}, ${pem:FILE} (contents), ${key:NAME} (path of a private key, made on the
way), and the name of a peer for its URL.
"""
CFG = "apiserver.config.k8s.io/v1"


def kubeconfig(peer, **user):
    return {"apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": "${%s}" % peer, "certificate-authority": "${pki}/peer-ca.crt"}}],
            "users": [{"name": "u", "user": user}]}


def x509(cn, *o, **kw):
    return {"x509": dict({"cn": cn, "o": list(o)}, **kw)}


def idtoken(at, /, key="k1", header=None, alg=None, **claims):
    """A token of a scripted issuer."""
    c = {"iss": "${%s}" % at, "aud": "client", "sub": "alice", "iat": "now-10", "exp": "now+3000"}
    c.update(claims)
    out = {"key": key, "claims": c}
    if header: out["header"] = header
    if alg: out["alg"] = alg
    return {"jwt": out}


def jwt(iss, username, **kw):
    """One entry of AuthenticationConfiguration.jwt."""
    issuer = {"url": "${%s}" % iss, "audiences": ["client"], "certificateAuthority": "${pem:peer-ca.crt}"}
    issuer.update(kw.pop("issuer", {}))
    out = {"issuer": issuer, "claimMappings": dict({"username": username}, **kw.pop("mappings", {}))}
    out.update(kw)
    return out


OIDC_COMMON = {
    "alice": idtoken("ida", groups=["g1", "g2"], hd="example.com", jti="id-1"),
    "onegroup": idtoken("ida", groups="g1", hd="example.com"),
    "nogroups": idtoken("ida", hd="example.com"),
    "badgroups": idtoken("ida", groups={"a": "b"}, hd="example.com"),
    "numbergroups": idtoken("ida", groups=[1, 2], hd="example.com"),
    "emptygroups": idtoken("ida", groups=["", "g"], hd="example.com"),
    "es": idtoken("ida", key="kes256", alg="ES256", hd="example.com"),
    "rsfivetwelve": idtoken("ida", alg="RS512", hd="example.com"),
    "ps": idtoken("ida", alg="PS256", hd="example.com"),
    "none": idtoken("ida", alg="none", hd="example.com"),
    "hs": idtoken("ida", alg="HS256", hd="example.com"),
    "unknownkid": idtoken("ida", key="kzz", hd="example.com"),
    "wrongkid": idtoken("ida", key="kzz", header={"kid": "k1"}, hd="example.com"),
    "nokid": idtoken("ida", header={"kid": None}, hd="example.com"),
    "expired": idtoken("ida", exp="now-5", hd="example.com"),
    "noexp": idtoken("ida", exp=None, hd="example.com"),
    "notyet": idtoken("ida", nbf="now+600", hd="example.com"),
    "soon": idtoken("ida", nbf="now+30", hd="example.com"),
    "wrongaud": idtoken("ida", aud="other", hd="example.com"),
    "manyaud": idtoken("ida", aud=["other", "client"], hd="example.com"),
    "noaud": idtoken("ida", aud=None, hd="example.com"),
    "wrongiss": idtoken("ida", iss="https://127.0.0.1:1/nope", hd="example.com"),
    "slashiss": idtoken("ida", iss="${ida}/", hd="example.com"),
    "nosub": idtoken("ida", sub=None, hd="example.com"),
    "numbersub": idtoken("ida", sub=7, hd="example.com"),
    "emptysub": idtoken("ida", sub="", hd="example.com"),
    "systemsub": idtoken("ida", sub="system:admin", hd="example.com"),
    "wronghd": idtoken("ida", hd="evil.example.com"),
    "nohd": idtoken("ida"),
    "numberhd": idtoken("ida", hd=1),
    "uid": idtoken("ida", hd="example.com", uid="u-1"),
    "rotated": idtoken("ida", key="k2", hd="example.com"),
}
ISSUERS = {"ida": {"type": "issuer", "keys": ["k1", "kes256"]}, "idb": {"type": "issuer", "keys": ["k3"]}, "idc": {"type": "issuer", "keys": ["k4"]}}
TOKENREVIEW_RULES = [
    {"when": {"spec.token": "^good-"}, "answer": {"status": {"authenticated": True, "user": {"username": "hooked", "uid": "u1", "groups": ["h1", "h2"], "extra": {"Example.com/K": ["v1", "v2"], "e": []}}}}},
    {"when": {"spec.token": "^plain-"}, "answer": {"status": {"authenticated": True, "user": {"username": "plain"}}}},
    {"when": {"spec.token": "^aud-"}, "answer": {"status": {"authenticated": True, "audiences": ["https://kubernetes.default.svc", "zz"], "user": {"username": "auded"}}}},
    {"when": {"spec.token": "^wrongaud-"}, "answer": {"status": {"authenticated": True, "audiences": ["zz"], "user": {"username": "wrongaud"}}}},
    {"when": {"spec.token": "^masters-"}, "answer": {"status": {"authenticated": True, "user": {"username": "m", "groups": ["system:masters"]}}}},
    {"when": {"spec.token": "^nouser-"}, "answer": {"status": {"authenticated": True}}},
    {"when": {"spec.token": "^authgroup-"}, "answer": {"status": {"authenticated": True, "user": {"username": "a", "groups": ["system:authenticated", "x"]}}}},
    {"when": {"spec.token": "^error-"}, "answer": {"status": {"authenticated": False, "error": "token is revoked"}}},
    {"when": {"spec.token": "^both-"}, "answer": {"status": {"authenticated": True, "error": "odd", "user": {"username": "both"}}}},
    {"when": {"spec.token": "^http400-"}, "code": 400, "raw": "no"},
    {"when": {"spec.token": "^http500-"}, "code": 500, "raw": "no"},
    {"when": {"spec.token": "^garbage-"}, "raw": "not json"},
    {"when": {"spec.token": "^wrongkind-"}, "answer": {"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "status": {"allowed": True}}},
    {"when": {"spec.token": "^close-"}, "close": True},
]
SAR_RULES = [
    {"when": {"spec.user": "^allow"}, "answer": {"status": {"allowed": True, "reason": "hook likes you"}}},
    {"when": {"spec.user": "^deny"}, "answer": {"status": {"allowed": False, "denied": True, "reason": "hook says never"}}},
    {"when": {"spec.user": "^bothset"}, "answer": {"status": {"allowed": True, "denied": True, "reason": "confused"}}},
    {"when": {"spec.user": "^reason"}, "answer": {"status": {"allowed": False, "reason": "hook has no idea <&>"}}},
    {"when": {"spec.user": "^evalerr"}, "answer": {"status": {"allowed": False, "evaluationError": "cannot look it up"}}},
    {"when": {"spec.user": "^http500"}, "code": 500, "raw": "no"},
    {"when": {"spec.user": "^http403"}, "code": 403, "raw": "no"},
    {"when": {"spec.user": "^garbage"}, "raw": "not json"},
]


def hookauthz(name, peer, **kw):
    w = {"timeout": "3s", "subjectAccessReviewVersion": "v1", "failurePolicy": "NoOpinion", "authorizedTTL": "10s", "unauthorizedTTL": "10s",
         "connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": "${dir}/%s.kubeconfig" % peer}}
    w.update(kw)
    return {"type": "Webhook", "name": name, "webhook": w}


USERS = {"alice": x509("alice", "dev", "ops"), "bob": x509("bob"), "mallory": x509("mallory", "dev"),
         "knode": x509("system:node:n1", "system:nodes")}
RULES_AUTHZ_CONFIG = [{"type": "Node", "name": "node"}, {"type": "RBAC", "name": "rbac"},
                      hookauthz("first", "hooka", matchConditionSubjectAccessReviewVersion="v1", matchConditions=[
                          {"expression": "has(request.resourceAttributes)"},
                          {"expression": "request.resourceAttributes.resource != 'secrets' || request.resourceAttributes.verb in ['get', 'list']"},
                          {"expression": "!('skipme' in request.groups)"}]),
                      hookauthz("second", "hookb", failurePolicy="Deny", subjectAccessReviewVersion="v1beta1", matchConditionSubjectAccessReviewVersion="v1",
                                matchConditions=[{"expression": "request.user.startsWith('second') || request.resourceAttributes.name == 'matcherror'"}])]

PROFILES = {
    "default": {},
    "aggregator": {                             # corpus aggregation/: the server has a client certificate for aggregated servers
        "flags": {"proxy-client-cert-file": "${pki}/cred-aggregator-front.crt", "proxy-client-key-file": "${pki}/cred-aggregator-front.key",
                  "requestheader-client-ca-file": "${pki}/ca.crt", "requestheader-allowed-names": "front-proxy",
                  "requestheader-username-headers": "X-Remote-User", "requestheader-group-headers": "X-Remote-Group",
                  "requestheader-uid-headers": "X-Remote-Uid", "requestheader-extra-headers-prefix": "X-Remote-Extra-"},
        "credentials": {"front": x509("front-proxy")}},
    "base": {                                   # certificates of every kind, tokens signed with the server's key
        "credentials": dict(USERS, **{
            "uid": x509("uidded", "g", uid="uid-1"), "uidempty": x509("uidempty", uid=""), "uids": x509("uids", uid=["a", "b"]),
            "expired": x509("expired", "g", days=-1), "servereku": x509("servereku", eku="serverAuth"), "noeku": x509("noeku", eku=None),
            "botheku": x509("botheku", eku="serverAuth,clientAuth"), "anyeku": x509("anyeku", eku="anyExtendedKeyUsage"),
            "mid": x509("mid", "g", ca="mid-ca", chain="mid-ca"), "midnochain": x509("midnochain", ca="mid-ca"),
            "unknown": x509("unknown", "g", ca="other-ca"), "nocn": x509("", "g"), "masters": x509("root", "system:masters"),
            "proxycert": x509("front", ca="proxy-ca"), "utf": x509("zoë", "grüppe"), "certanon": x509("system:anonymous"),
            "certunauth": x509("someone", "system:unauthenticated"), "certauth": x509("someone", "system:authenticated", "x"),
            "certsa": x509("system:serviceaccount:default:default"), "nothing": {},
        })},
    "proxy": {
        "flags": {"requestheader-client-ca-file": "${pki}/proxy-ca.crt", "requestheader-allowed-names": "front,edge",
                  "requestheader-username-headers": "X-Remote-User,X-Alt-User", "requestheader-group-headers": "X-Remote-Group,X-Alt-Group",
                  "requestheader-extra-headers-prefix": "X-Remote-Extra-,X-Alt-Extra-", "requestheader-uid-headers": "X-Remote-Uid"},
        "credentials": dict(USERS, front=x509("front", ca="proxy-ca"), wrongname=x509("back", ca="proxy-ca"),
                            expired=x509("front", ca="proxy-ca", days=-1), frontofca=x509("front"), serverfront=x509("front", ca="proxy-ca", eku="serverAuth"),
                            nothing={})},
    "proxyany": {
        "flags": {"requestheader-client-ca-file": "${pki}/proxy-ca.crt", "requestheader-username-headers": "X-Remote-User",
                  "requestheader-group-headers": "X-Remote-Group", "requestheader-extra-headers-prefix": "X-Remote-Extra-"},
        "credentials": dict(USERS, front=x509("anything", ca="proxy-ca"), nocn=x509("", "o", ca="proxy-ca"))},
    "tokens": {
        "flags": {"token-auth-file": "${dir}/tokens.csv", "enable-bootstrap-token-auth": "true"},
        "files": {"tokens.csv": 'tokcarol,carol,1001,"g1,g2"\ntokdan,dan,1002\ntoknone,,1003\n tokspace , erin , 1004 , g 1 \n,empty,1005\ntokdup,first,1\ntokdup,second,2\n'
                                'tokmany,many,7,"a,b",ignored,columns\ntokmasters,boss,8,"system:masters"\ntokquote,"o""brien",9,"x, y"\n'},
        "credentials": dict(USERS, carol={"token": "tokcarol"}, dan={"token": "tokdan"}, noname={"token": "toknone"}, space={"token": " tokspace "},
                            spacetrim={"token": "tokspace"}, dup={"token": "tokdup"}, many={"token": "tokmany"}, boss={"token": "tokmasters"},
                            quote={"token": "tokquote"}, wrong={"token": "tokcaro"}, upper={"token": "TOKCAROL"}, nothing={})},
    "oidc": {
        "peers": ISSUERS,
        "flags": {"oidc-issuer-url": "${ida}", "oidc-client-id": "client", "oidc-ca-file": "${pki}/peer-ca.crt", "oidc-groups-claim": "groups",
                  "oidc-groups-prefix": "oidc:", "oidc-required-claim": "hd=example.com", "oidc-signing-algs": "RS256,ES256"},
        "credentials": OIDC_COMMON},
    "oidcemail": {
        "peers": ISSUERS,
        "flags": {"oidc-issuer-url": "${ida}", "oidc-client-id": "client", "oidc-ca-file": "${pki}/peer-ca.crt", "oidc-groups-claim": "groups",
                  "oidc-username-claim": "email"},
        "credentials": {
            "verified": idtoken("ida", email="a@example.com", email_verified=True, groups=["g"]),
            "unverified": idtoken("ida", email="a@example.com", email_verified=False),
            "unsaid": idtoken("ida", email="a@example.com"),
            "stringverified": idtoken("ida", email="a@example.com", email_verified="true"),
            "noemail": idtoken("ida"), "es": idtoken("ida", key="kes256", alg="ES256", email="a@example.com")}},
    "oidcprefix": {
        "peers": ISSUERS,
        "flags": {"oidc-issuer-url": "${ida}", "oidc-client-id": "client", "oidc-ca-file": "${pki}/peer-ca.crt", "oidc-username-claim": "name",
                  "oidc-username-prefix": "-", "oidc-groups-claim": "roles"},
        "credentials": {"named": idtoken("ida", name="alice", roles=["dev"]), "masters": idtoken("ida", name="x", roles=["system:masters"]),
                        "sa": idtoken("ida", name="system:serviceaccount:default:default"), "distributed": idtoken("ida", name="d", _claim_names={"roles": "src"}, _claim_sources={"src": {"endpoint": "${ida}/claims/roles", "access_token": "secret"}}),
                        "distributedbad": idtoken("ida", name="d", _claim_names={"roles": "src"}, _claim_sources={"src": {"endpoint": "${ida}/claims/nope"}}),
                        "distributednosource": idtoken("ida", name="d", _claim_names={"roles": "src"})}},
    "authnconfig": {
        "peers": dict(ISSUERS, idc={"type": "issuer", "keys": ["k4"], "document": {"issuer": "https://issuer.invalid/c"}}, idd={"type": "issuer", "keys": ["k5"], "document": {"issuer": "https://127.0.0.1:1/elsewhere"}}, ide={"type": "issuer", "keys": ["k6"], "down": 503}),
        "flags": {"authentication-config": "${dir}/authn.yaml"},
        "files": {"authn.yaml": {"apiVersion": CFG, "kind": "AuthenticationConfiguration", "jwt": [
            jwt("ida", {"claim": "sub", "prefix": "a:"}, issuer={"audiences": ["client", "client2"], "audienceMatchPolicy": "MatchAny"},
                mappings={"groups": {"claim": "groups", "prefix": "ag:"}, "uid": {"claim": "uid"},
                          "extra": [{"key": "example.com/tenant", "valueExpression": "claims.tenant"}]},
                claimValidationRules=[{"claim": "hd", "requiredValue": "example.com"}]),
            jwt("idb", {"expression": "'b:' + claims.sub + (has(claims.suffix) ? claims.suffix : '')"},
                mappings={"groups": {"expression": "has(claims.csv) ? claims.csv.split(',') : has(claims.roles) ? claims.roles : []"}, "uid": {"expression": "claims.?uid.orValue('none')"},
                          "extra": [{"key": "example.com/scopes", "valueExpression": "claims.?scopes.orValue([])"}, {"key": "example.com/one", "valueExpression": "claims.?one.orValue('')"},
                                    {"key": "example.com/nested", "valueExpression": "has(claims.deep) ? claims.deep.a.b : ''"}]},
                claimValidationRules=[{"expression": "!has(claims.banned) || !claims.banned", "message": "you are banned"},
                                      {"expression": "claims.exp - claims.iat <= 86400"}],
                userValidationRules=[{"expression": "!user.username.startsWith('b:system:')", "message": "reserved name"},
                                     {"expression": "user.groups.all(g, !g.startsWith('system:'))"}]),
            jwt("idc", {"expression": "claims.email_verified ? claims.email : claims.sub"}, issuer={"url": "https://issuer.invalid/c", "discoveryURL": "${idc}/.well-known/openid-configuration"}),
            jwt("idd", {"claim": "sub", "prefix": ""}), jwt("ide", {"claim": "sub", "prefix": ""})]}},
        "credentials": {
            "alice": idtoken("ida", hd="example.com", uid="u1", tenant="t1", groups=["g"], jti="j1"),
            "aud2": idtoken("ida", aud="client2", hd="example.com", uid="u1", tenant=["t1", "t2"]),
            "badaud": idtoken("ida", aud="client3", hd="example.com", uid="u1", tenant="t"),
            "nouid": idtoken("ida", hd="example.com", tenant="t"), "notenant": idtoken("ida", hd="example.com", uid="u1"),
            "numbertenant": idtoken("ida", hd="example.com", uid="u1", tenant=5), "nohd": idtoken("ida", uid="u1", tenant="t"),
            "nulltenant": idtoken("ida", hd="example.com", uid="u1", tenant=""),
            "ps": idtoken("ida", alg="PS256", hd="example.com", uid="u", tenant="t"), "rsf": idtoken("ida", alg="RS384", hd="example.com", uid="u", tenant="t"),
            "bob": idtoken("idb", key="k3", sub="bob", suffix="!", roles=["r1", "r2"], uid="ub", scopes=["s1", "s2"], one="x", deep={"a": {"b": "c"}}),
            "bobplain": idtoken("idb", key="k3", sub="bob"), "bobbanned": idtoken("idb", key="k3", sub="bob", banned=True),
            "bobbannedstr": idtoken("idb", key="k3", sub="bob", banned="yes"), "boblong": idtoken("idb", key="k3", sub="bob", exp="now+90000"),
            "bobsystem": idtoken("idb", key="k3", sub="system:x"), "bobsystemgroup": idtoken("idb", key="k3", sub="bob", roles=["system:masters"]), "bobcsv": idtoken("idb", key="k3", sub="bob", csv="r1,r2"), "bobonerole": idtoken("idb", key="k3", sub="bob", roles="r1"),
            "bobnumber": idtoken("idb", key="k3", sub=5), "bobrolesnumber": idtoken("idb", key="k3", sub="bob", roles=7),
            "bobuidnumber": idtoken("idb", key="k3", sub="bob", uid=7), "bobscopesnumber": idtoken("idb", key="k3", sub="bob", scopes=[1]),
            "bobkeyofa": idtoken("idb", key="k1", sub="bob"),
            "cverified": idtoken("idc", key="k4", iss="https://issuer.invalid/c", email="c@example.com", email_verified=True),
            "cunverified": idtoken("idc", key="k4", iss="https://issuer.invalid/c", email="c@example.com", email_verified=False),
            "cempty": idtoken("idc", key="k4", iss="https://issuer.invalid/c", email="", email_verified=True),
            "cnoemail": idtoken("idc", key="k4", iss="https://issuer.invalid/c"),
            "cdirect": idtoken("idc", key="k4", email="c@example.com", email_verified=True),
            "dave": idtoken("idd", key="k5", sub="dave"), "eve": idtoken("ide", key="k6", sub="eve")}},
    "authntypes": {                             # expressions whose type shows only when they run
        "peers": ISSUERS, "flags": {"authentication-config": "${dir}/authn.yaml"},
        "files": {"authn.yaml": {"apiVersion": CFG, "kind": "AuthenticationConfiguration", "jwt": [
            jwt("ida", {"expression": "claims.name"}, mappings={"groups": {"expression": "claims.g"}, "uid": {"expression": "claims.u"}, "extra": [{"key": "example.com/e", "valueExpression": "claims.e"}]},
                claimValidationRules=[{"expression": "claims.ok == true", "message": "not ok"}])]}},
        "credentials": {
            "all": idtoken("ida", name="n", g=["a"], u="u", e="v", ok=True), "nullgroups": idtoken("ida", name="n", g=[], u="u", e=[], ok=True),
            "stringgroup": idtoken("ida", name="n", g="a", u="u", e=["x", "", "y"], ok=True), "emptyname": idtoken("ida", name="", g=["a"], u="u", e="v", ok=True),
            "numbername": idtoken("ida", name=1, g=["a"], u="u", e="v", ok=True), "mixedgroups": idtoken("ida", name="n", g=["a", 1], u="u", e="v", ok=True),
            "mapgroups": idtoken("ida", name="n", g={"a": "b"}, u="u", e="v", ok=True), "numberuid": idtoken("ida", name="n", g=["a"], u=1, e="v", ok=True),
            "mapextra": idtoken("ida", name="n", g=["a"], u="u", e={"a": "b"}, ok=True), "notok": idtoken("ida", name="n", g=["a"], u="u", e="v", ok=False),
            "stringok": idtoken("ida", name="n", g=["a"], u="u", e="v", ok="true"), "emptyuid": idtoken("ida", name="n", g=["a"], u="", e="", ok=True)}},
    "authnreload": {
        "peers": ISSUERS, "flags": {"authentication-config": "${dir}/authn.yaml"},
        "files": {"authn.yaml": {"apiVersion": CFG, "kind": "AuthenticationConfiguration", "anonymous": {"enabled": True, "conditions": [{"path": "/healthz"}]},
                                 "jwt": [jwt("ida", {"claim": "sub", "prefix": "a:"})]}},
        "credentials": {"alice": idtoken("ida"), "bob": idtoken("idb", key="k3", sub="bob"), "carl": idtoken("idc", key="k4", sub="carl"), "nothing": {}}},
    "anonpaths": {
        "flags": {"authentication-config": "${dir}/authn.yaml"},
        "files": {"authn.yaml": {"apiVersion": CFG, "kind": "AuthenticationConfiguration", "anonymous": {"enabled": True, "conditions": [{"path": "/healthz"}, {"path": "/livez"}, {"path": "/apis"}]}}},
        "credentials": dict(USERS, nothing={}, badtoken={"token": "nope"})},
    "noanon": {"flags": {"anonymous-auth": "false"}, "credentials": dict(USERS, nothing={}, badtoken={"token": "nope"})},
    "tokenhook": {
        "peers": {"hook": {"type": "hook", "rules": TOKENREVIEW_RULES}},
        "flags": {"authentication-token-webhook-config-file": "${dir}/hook.kubeconfig", "authentication-token-webhook-version": "v1"},
        "files": {"hook.kubeconfig": kubeconfig("hook", token="hooksecret")}, "credentials": dict(USERS)},
    "tokenhookbeta": {
        "peers": {"hook": {"type": "hook", "rules": TOKENREVIEW_RULES}},
        "flags": {"authentication-token-webhook-config-file": "${dir}/hook.kubeconfig", "authentication-token-webhook-cache-ttl": "0s",
                  "api-audiences": "aud1,https://kubernetes.default.svc"},
        "files": {"hook.kubeconfig": kubeconfig("hook", **{"client-certificate": "${pki}/admin.crt", "client-key": "${pki}/admin.key"})}, "credentials": dict(USERS)},
    "satokens": {                               # several issuers and keys, audiences of its own, limits
        "flags": {"service-account-issuer": ["https://kubernetes.default.svc", "https://old.example.com", "plain-name"],
                  "service-account-key-file": ["${pki}/sa.key", "${key:sa2}", "${key:sa-es256}"], "api-audiences": "api,https://kubernetes.default.svc",
                  "service-account-max-token-expiration": "2h", "service-account-extend-token-expiration": "false",
                  "service-account-jwks-uri": "https://jwks.example.com/keys"},
        "credentials": dict(USERS)},
    "sanolookup": {"flags": {"service-account-lookup": "false", "service-account-signing-key-file": "${key:sa-es384}", "service-account-key-file": ["${key:sa-es384}", "${pki}/sa.pub"]}},
    "legacyimp": {"flags": {"feature-gates": "ConstrainedImpersonation=false"}, "credentials": USERS},
    "node": {"flags": {"enable-admission-plugins": "NodeRestriction"}, "credentials": USERS},
    "abac": {
        "flags": {"authorization-mode": "ABAC", "authorization-policy-file": "${dir}/policy"},
        "files": {"policy": "\n".join(['# comment', '',
            '{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"alice","namespace":"*","resource":"*","apiGroup":"*"}}',
            '{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"bob","namespace":"default","resource":"configmaps","readonly":true}}',
            '{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"group":"gpods","namespace":"default","resource":"pods"}}',
            '{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"both","group":"gboth","namespace":"*","resource":"pods"}}',
            '{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"paths","nonResourcePath":"/api*"}}',
            '{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"exact","nonResourcePath":"/version","readonly":true}}',
            '{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"allpaths","nonResourcePath":"*"}}',
            '{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"clusterscope","resource":"nodes"}}',
            '{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"apps","namespace":"*","resource":"deployments","apiGroup":"apps"}}',
            '{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"*","nonResourcePath":"/healthz","readonly":true}}',
            '{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"group":"system:unauthenticated","nonResourcePath":"/readyz"}}',
            '{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"namespace":"*","resource":"leases","apiGroup":"*"}}',
            '{"user":"oldway"}', '{"user":"oldns","namespace":"default","resource":"pods","readonly":true}', '{"group":"oldgroup","resource":"services"}', ""])},
        "credentials": USERS},
    "abacrbac": {
        "flags": {"authorization-mode": "ABAC,RBAC", "authorization-policy-file": "${dir}/policy"},
        "files": {"policy": '{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"alice","namespace":"*","resource":"configmaps","readonly":true}}\n'},
        "credentials": USERS},
    "alwaysallow": {"flags": {"authorization-mode": "AlwaysAllow"}, "credentials": dict(USERS, nothing={})},
    "nomode": {"flags": {"authorization-mode": None}, "credentials": dict(USERS, nothing={})},
    "emptymode": {"flags": {"authorization-mode": ""}, "credentials": dict(USERS, nothing={})},
    "alwaysdeny": {"flags": {"authorization-mode": "AlwaysDeny"}, "credentials": dict(USERS, nothing={})},
    "denyrbac": {"flags": {"authorization-mode": "AlwaysDeny,RBAC"}, "credentials": USERS},
    "authzhook": {
        "peers": {"hook": {"type": "hook", "rules": SAR_RULES}},
        "flags": {"authorization-mode": "RBAC,Webhook", "authorization-webhook-config-file": "${dir}/hook.kubeconfig", "authorization-webhook-version": "v1"},
        "files": {"hook.kubeconfig": kubeconfig("hook", token="hooksecret")}, "credentials": USERS},
    "authzhookbeta": {
        "peers": {"hook": {"type": "hook", "rules": SAR_RULES}},
        "flags": {"authorization-mode": "Webhook,RBAC", "authorization-webhook-config-file": "${dir}/hook.kubeconfig",
                  "authorization-webhook-cache-authorized-ttl": "0s", "authorization-webhook-cache-unauthorized-ttl": "0s"},
        "files": {"hook.kubeconfig": kubeconfig("hook", token="hooksecret")}, "credentials": USERS},
    "authzconfig": {
        "peers": {"hooka": {"type": "hook", "rules": SAR_RULES}, "hookb": {"type": "hook", "rules": SAR_RULES + [{"when": {"spec.user": "^second"}, "answer": {"status": {"allowed": True, "reason": "second likes you"}}}]}},
        "flags": {"authorization-mode": None, "authorization-config": "${dir}/authz.yaml"},
        "files": {"authz.yaml": {"apiVersion": CFG, "kind": "AuthorizationConfiguration", "authorizers": RULES_AUTHZ_CONFIG},
                  "hooka.kubeconfig": kubeconfig("hooka"), "hookb.kubeconfig": kubeconfig("hookb")},
        "credentials": USERS},
    "authzreload": {
        "peers": {"hooka": {"type": "hook", "rules": SAR_RULES}},
        "flags": {"authorization-mode": None, "authorization-config": "${dir}/authz.yaml"},
        "files": {"authz.yaml": {"apiVersion": CFG, "kind": "AuthorizationConfiguration", "authorizers": RULES_AUTHZ_CONFIG[:2]},
                  "hooka.kubeconfig": kubeconfig("hooka")},
        "credentials": USERS},
}
