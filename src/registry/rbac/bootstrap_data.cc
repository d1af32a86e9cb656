// The roles and bindings themselves: data only. A rule is a line
//   <apiGroups> <resources> [names=<resourceNames>] : <verbs>      or      URL <nonResourceURLs...> : <verbs>
// lists separated by commas and kept in this order; "core" is the group "". Short for verbs:
//   R get,list,watch   W create,delete,deletecollection,patch,update   RU get,list,patch,update,watch
//   RW create,delete,deletecollection,get,list,patch,update,watch      EV create,patch,update
#include "registry/rbac/bootstrap_data.h"

namespace keelson::registry::bootstrap {
namespace {

// Name, label aggregate-to-..., aggregates by label aggregate-to-..., rules.
constexpr ClusterRoleData kClusterRoles[] = {
    {"admin", "", "aggregate-to-admin", ""},
    {"cluster-admin", "", "",
     "* * : *\n"
     "URL * : *\n"},
    {"edit", "aggregate-to-admin", "aggregate-to-edit", ""},
    {"system:aggregate-to-admin", "aggregate-to-admin", "",
     "authorization.k8s.io localsubjectaccessreviews : create\n"
     "rbac.authorization.k8s.io rolebindings,roles : RW\n"},
    {"system:aggregate-to-edit", "aggregate-to-edit", "",
     "core pods/attach,pods/exec,pods/portforward,pods/proxy,secrets,services/proxy : R\n"
     "core serviceaccounts : impersonate\n"
     "core pods,pods/attach,pods/exec,pods/portforward,pods/proxy : W\n"
     "core pods/eviction : create\n"
     "core "
     "configmaps,persistentvolumeclaims,replicationcontrollers,replicationcontrollers/"
     "scale,secrets,serviceaccounts,services,"
     "services/proxy : W\n"
     "core serviceaccounts/token : create\n"
     "core,events.k8s.io events : W\n"
     "apps daemonsets,deployments,deployments/rollback,deployments/scale,replicasets,replicasets/scale,statefulsets,"
     "statefulsets/scale : W\n"
     "autoscaling horizontalpodautoscalers : W\n"
     "batch cronjobs,jobs : W\n"
     "extensions daemonsets,deployments,deployments/rollback,deployments/scale,ingresses,networkpolicies,replicasets,"
     "replicasets/scale,replicationcontrollers/scale : W\n"
     "policy poddisruptionbudgets : W\n"
     "networking.k8s.io ingresses,networkpolicies : W\n"
     "coordination.k8s.io leases : RW\n"
     "resource.k8s.io resourceclaims,resourceclaimtemplates : W\n"},
    {"system:aggregate-to-view", "aggregate-to-view", "",
     "core configmaps,endpoints,persistentvolumeclaims,persistentvolumeclaims/status,pods,replicationcontrollers,"
     "replicationcontrollers/scale,serviceaccounts,services,services/status : R\n"
     "core bindings,limitranges,namespaces/status,pods/log,pods/status,replicationcontrollers/status,resourcequotas,"
     "resourcequotas/status : R\n"
     "core namespaces : R\n"
     "core,events.k8s.io events : R\n"
     "discovery.k8s.io endpointslices : R\n"
     "apps "
     "controllerrevisions,daemonsets,daemonsets/status,deployments,deployments/scale,deployments/status,replicasets,"
     "replicasets/scale,replicasets/status,statefulsets,statefulsets/scale,statefulsets/status : R\n"
     "autoscaling horizontalpodautoscalers,horizontalpodautoscalers/status : R\n"
     "batch cronjobs,cronjobs/status,jobs,jobs/status : R\n"
     "extensions "
     "daemonsets,daemonsets/status,deployments,deployments/scale,deployments/status,ingresses,ingresses/status,"
     "networkpolicies,replicasets,replicasets/scale,replicasets/status,replicationcontrollers/scale : R\n"
     "policy poddisruptionbudgets,poddisruptionbudgets/status : R\n"
     "networking.k8s.io ingresses,ingresses/status,networkpolicies : R\n"
     "resource.k8s.io resourceclaims,resourceclaims/status,resourceclaimtemplates : R\n"},
    {"system:auth-delegator", "", "",
     "authentication.k8s.io tokenreviews : create\n"
     "authorization.k8s.io subjectaccessreviews : create\n"},
    {"system:basic-user", "", "",
     "authorization.k8s.io selfsubjectaccessreviews,selfsubjectrulesreviews : create\n"
     "authentication.k8s.io selfsubjectreviews : create\n"},
    {"system:certificates.k8s.io:certificatesigningrequests:nodeclient", "", "",
     "certificates.k8s.io certificatesigningrequests/nodeclient : create\n"},
    {"system:certificates.k8s.io:certificatesigningrequests:selfnodeclient", "", "",
     "certificates.k8s.io certificatesigningrequests/selfnodeclient : create\n"},
    {"system:certificates.k8s.io:kube-apiserver-client-approver", "", "",
     "certificates.k8s.io signers names=kubernetes.io/kube-apiserver-client : approve\n"},
    {"system:certificates.k8s.io:kube-apiserver-client-kubelet-approver", "", "",
     "certificates.k8s.io signers names=kubernetes.io/kube-apiserver-client-kubelet : approve\n"},
    {"system:certificates.k8s.io:kubelet-serving-approver", "", "",
     "certificates.k8s.io signers names=kubernetes.io/kubelet-serving : approve\n"},
    {"system:certificates.k8s.io:legacy-unknown-approver", "", "",
     "certificates.k8s.io signers names=kubernetes.io/legacy-unknown : approve\n"},
    {"system:discovery", "", "",
     "URL /api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version /version/ : get\n"},
    {"system:heapster", "", "",
     "core events,namespaces,nodes,pods : R\n"
     "extensions deployments : R\n"},
    {"system:kube-aggregator", "", "", "core endpoints,services : R\n"},
    {"system:kube-controller-manager", "", "",
     "core,events.k8s.io events : EV\n"
     "coordination.k8s.io leases : create\n"
     "coordination.k8s.io leases names=kube-controller-manager : get,update\n"
     "core secrets,serviceaccounts : create\n"
     "core secrets : delete\n"
     "core configmaps,namespaces,secrets,serviceaccounts : get\n"
     "core secrets,serviceaccounts : update\n"
     "authentication.k8s.io tokenreviews : create\n"
     "authorization.k8s.io subjectaccessreviews : create\n"
     "* * : list,watch\n"
     "core serviceaccounts/token : create\n"},
    {"system:kube-dns", "", "", "core endpoints,services : list,watch\n"},
    {"system:kube-scheduler", "", "",
     "core,events.k8s.io events : EV\n"
     "coordination.k8s.io leases : create\n"
     "coordination.k8s.io leases names=kube-scheduler : get,list,update,watch\n"
     "coordination.k8s.io leasecandidates : RW\n"
     "core nodes : R\n"
     "core pods : delete,get,list,watch\n"
     "core bindings,pods/binding : create\n"
     "core pods/status : patch,update\n"
     "core replicationcontrollers,services : R\n"
     "apps,extensions replicasets : R\n"
     "apps statefulsets : R\n"
     "policy poddisruptionbudgets : R\n"
     "core persistentvolumeclaims,persistentvolumes : R\n"
     "authentication.k8s.io tokenreviews : create\n"
     "authorization.k8s.io subjectaccessreviews : create\n"
     "storage.k8s.io csinodes : R\n"
     "storage.k8s.io volumeattachments : R\n"
     "core namespaces : R\n"
     "storage.k8s.io csidrivers : R\n"
     "storage.k8s.io csistoragecapacities : R\n"
     "resource.k8s.io deviceclasses : R\n"
     "resource.k8s.io resourceclaims : RU\n"
     "resource.k8s.io resourceclaims/status : RU\n"
     "core pods/finalizers : update\n"
     "resource.k8s.io resourceslices : R\n"
     "resource.k8s.io resourceclaims : create,delete\n"
     "resource.k8s.io resourceclaims/binding : patch,update\n"},
    {"system:kubelet-api-admin", "", "",
     "core nodes : R\n"
     "core nodes : proxy\n"
     "core nodes/log,nodes/metrics,nodes/proxy,nodes/stats : *\n"
     "core nodes/configz,nodes/healthz,nodes/pods : *\n"},
    {"system:monitoring", "", "",
     "URL /flagz /healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/* /statusz : get\n"
     "core nodes/metrics : get\n"},
    {"system:node", "", "",
     "authentication.k8s.io tokenreviews : create\n"
     "authorization.k8s.io localsubjectaccessreviews,subjectaccessreviews : create\n"
     "core services : R\n"
     "core nodes : create,get,list,watch\n"
     "core nodes/status : patch,update\n"
     "core nodes : patch,update\n"
     "core,events.k8s.io events : EV\n"
     "core pods : R\n"
     "core pods : create,delete\n"
     "core pods/status : patch,update\n"
     "core pods/eviction : create\n"
     "core configmaps,secrets : R\n"
     "core persistentvolumeclaims,persistentvolumes : get\n"
     "core endpoints : get\n"
     "certificates.k8s.io certificatesigningrequests : create,get,list,watch\n"
     "coordination.k8s.io leases : create,delete,get,patch,update\n"
     "storage.k8s.io volumeattachments : get\n"
     "core serviceaccounts/token : create\n"
     "core persistentvolumeclaims/status : get,patch,update\n"
     "storage.k8s.io csidrivers : R\n"
     "storage.k8s.io csinodes : create,delete,get,patch,update\n"
     "node.k8s.io runtimeclasses : R\n"
     "resource.k8s.io resourceclaims : get\n"
     "resource.k8s.io resourceslices : deletecollection\n"
     "core serviceaccounts : get\n"},
    {"system:node-bootstrapper", "", "", "certificates.k8s.io certificatesigningrequests : create,get,list,watch\n"},
    {"system:node-problem-detector", "", "",
     "core nodes : get\n"
     "core nodes/status : patch\n"
     "core,events.k8s.io events : EV\n"},
    {"system:node-proxier", "", "",
     "core endpoints,services : list,watch\n"
     "core nodes : R\n"
     "core,events.k8s.io events : EV\n"
     "networking.k8s.io servicecidrs : list,watch\n"
     "discovery.k8s.io endpointslices : list,watch\n"},
    {"system:persistent-volume-provisioner", "", "",
     "core persistentvolumes : create,delete,get,list,watch\n"
     "core persistentvolumeclaims : get,list,update,watch\n"
     "storage.k8s.io storageclasses : R\n"
     "core events : watch\n"
     "core,events.k8s.io events : EV\n"},
    {"system:public-info-viewer", "", "", "URL /healthz /livez /readyz /version /version/ : get\n"},
    {"system:service-account-issuer-discovery", "", "",
     "URL /.well-known/openid-configuration /.well-known/openid-configuration/ /openid/v1/jwks /openid/v1/jwks/ : "
     "get\n"},
    {"system:volume-scheduler", "", "",
     "core persistentvolumes : RU\n"
     "storage.k8s.io storageclasses : R\n"
     "core persistentvolumeclaims : RU\n"},
    {"view", "aggregate-to-edit", "aggregate-to-view", ""},
    {"system:controller:attachdetach-controller", "", "",
     "core persistentvolumeclaims,persistentvolumes : list,watch\n"
     "core nodes : R\n"
     "core nodes/status : patch,update\n"
     "core pods : list,watch\n"
     "core,events.k8s.io events : EV\n"
     "storage.k8s.io volumeattachments : create,delete,get,list,watch\n"
     "storage.k8s.io csidrivers : R\n"
     "storage.k8s.io csinodes : R\n"},
    {"system:controller:certificate-controller", "", "",
     "certificates.k8s.io certificatesigningrequests : delete,get,list,watch\n"
     "certificates.k8s.io certificatesigningrequests/approval,certificatesigningrequests/status : update\n"
     "certificates.k8s.io signers names=kubernetes.io/kube-apiserver-client-kubelet : approve\n"
     "certificates.k8s.io signers "
     "names=kubernetes.io/kube-apiserver-client,kubernetes.io/kube-apiserver-client-kubelet,"
     "kubernetes.io/kubelet-serving,kubernetes.io/legacy-unknown : sign\n"
     "authorization.k8s.io subjectaccessreviews : create\n"
     "core,events.k8s.io events : EV\n"},
    {"system:controller:clusterrole-aggregation-controller", "", "",
     "rbac.authorization.k8s.io clusterroles : escalate,get,list,patch,update,watch\n"},
    {"system:controller:cronjob-controller", "", "",
     "batch cronjobs : get,list,update,watch\n"
     "batch jobs : create,delete,get,list,patch,update,watch\n"
     "batch cronjobs/status : update\n"
     "batch cronjobs/finalizers : update\n"
     "core pods : delete,list,watch\n"
     "core,events.k8s.io events : EV\n"},
    {"system:controller:daemon-set-controller", "", "",
     "apps,extensions daemonsets : R\n"
     "apps,extensions daemonsets/status : update\n"
     "apps,extensions daemonsets/finalizers : update\n"
     "core nodes : list,watch\n"
     "core pods : create,delete,list,patch,watch\n"
     "core pods/binding : create\n"
     "apps controllerrevisions : create,delete,get,list,patch,update,watch\n"
     "core,events.k8s.io events : EV\n"},
    {"system:controller:deployment-controller", "", "",
     "apps,extensions deployments : get,list,update,watch\n"
     "apps,extensions deployments/status : update\n"
     "apps,extensions deployments/finalizers : update\n"
     "apps,extensions replicasets : create,delete,get,list,patch,update,watch\n"
     "core pods : get,list,update,watch\n"
     "core,events.k8s.io events : EV\n"},
    {"system:controller:device-taint-eviction-controller", "", "",
     "core pods : delete,get,list,watch\n"
     "core pods/status : patch,update\n"
     "resource.k8s.io resourceclaims : R\n"
     "resource.k8s.io resourceslices : R\n"
     "resource.k8s.io deviceclasses : R\n"
     "core,events.k8s.io events : EV\n"},
    {"system:controller:disruption-controller", "", "",
     "apps,extensions deployments : R\n"
     "apps,extensions replicasets : R\n"
     "core replicationcontrollers : R\n"
     "policy poddisruptionbudgets : R\n"
     "apps statefulsets : R\n"
     "policy poddisruptionbudgets/status : update\n"
     "core pods/status : patch,update\n"
     "* */scale : get\n"
     "core,events.k8s.io events : EV\n"},
    {"system:controller:endpoint-controller", "", "",
     "core pods,services : R\n"
     "core endpoints : create,delete,get,list,update,watch\n"
     "core endpoints/restricted : create\n"
     "core,events.k8s.io events : EV\n"},
    {"system:controller:endpointslice-controller", "", "",
     "core nodes,pods,services : R\n"
     "core services/finalizers : update\n"
     "discovery.k8s.io endpointslices : create,delete,get,list,update,watch\n"
     "core,events.k8s.io events : EV\n"},
    {"system:controller:endpointslicemirroring-controller", "", "",
     "core endpoints,services : R\n"
     "core services/finalizers : update\n"
     "core endpoints/finalizers : update\n"
     "discovery.k8s.io endpointslices : create,delete,get,list,update,watch\n"
     "core,events.k8s.io events : EV\n"},
    {"system:controller:ephemeral-volume-controller", "", "",
     "core pods : R\n"
     "core pods/finalizers : update\n"
     "core persistentvolumeclaims : create,get,list,watch\n"
     "core,events.k8s.io events : EV\n"},
    {"system:controller:expand-controller", "", "",
     "core persistentvolumes : RU\n"
     "core persistentvolumeclaims/status : patch,update\n"
     "core persistentvolumeclaims : R\n"
     "core,events.k8s.io events : EV\n"},
    {"system:controller:generic-garbage-collector", "", "",
     "* * : delete,get,list,patch,update,watch\n"
     "core,events.k8s.io events : EV\n"},
    {"system:controller:horizontal-pod-autoscaler", "", "",
     "autoscaling horizontalpodautoscalers : R\n"
     "autoscaling horizontalpodautoscalers/status : update\n"
     "* */scale : get,update\n"
     "core pods : list,watch\n"
     "metrics.k8s.io pods : list,watch\n"
     "custom.metrics.k8s.io * : R\n"
     "external.metrics.k8s.io * : R\n"
     "core,events.k8s.io events : EV\n"},
    {"system:controller:job-controller", "", "",
     "batch jobs : RU\n"
     "batch jobs/status : update\n"
     "batch jobs/finalizers : update\n"
     "core pods : create,delete,list,patch,watch\n"
     "core,events.k8s.io events : EV\n"},
    {"system:controller:legacy-service-account-token-cleaner", "", "",
     "core configmaps names=kube-apiserver-legacy-service-account-token-tracking : get\n"
     "core secrets : delete,patch\n"},
    {"system:controller:namespace-controller", "", "",
     "core namespaces : delete,get,list,watch\n"
     "core namespaces/finalize,namespaces/status : update\n"
     "* * : delete,deletecollection,get,list,watch\n"},
    {"system:controller:node-controller", "", "",
     "core nodes : delete,get,list,patch,update,watch\n"
     "core nodes/status : patch,update\n"
     "core pods/status : patch,update\n"
     "core pods : delete,get,list,watch\n"
     "core,events.k8s.io events : EV\n"},
    {"system:controller:persistent-volume-binder", "", "",
     "core persistentvolumes : create,delete,get,list,update,watch\n"
     "core persistentvolumes/status : update\n"
     "core persistentvolumeclaims : get,list,update,watch\n"
     "core persistentvolumeclaims/status : update\n"
     "core pods : create,delete,get,list,watch\n"
     "storage.k8s.io storageclasses : R\n"
     "core nodes : list,watch\n"
     "core,events.k8s.io events : EV\n"
     "core events : watch\n"},
    {"system:controller:pod-garbage-collector", "", "",
     "core pods : delete,list,watch\n"
     "core nodes : R\n"
     "core pods/status : patch\n"},
    {"system:controller:pv-protection-controller", "", "",
     "core persistentvolumes : get,list,update,watch\n"
     "core,events.k8s.io events : EV\n"},
    {"system:controller:pvc-protection-controller", "", "",
     "core persistentvolumeclaims : get,list,update,watch\n"
     "core persistentvolumeclaims/status : update\n"
     "core pods : R\n"
     "core,events.k8s.io events : EV\n"},
    {"system:controller:replicaset-controller", "", "",
     "apps,extensions replicasets : get,list,update,watch\n"
     "apps,extensions replicasets/status : update\n"
     "apps,extensions replicasets/finalizers : update\n"
     "core pods : create,delete,list,patch,watch\n"
     "core,events.k8s.io events : EV\n"},
    {"system:controller:replication-controller", "", "",
     "core replicationcontrollers : get,list,update,watch\n"
     "core replicationcontrollers/status : update\n"
     "core replicationcontrollers/finalizers : update\n"
     "core pods : create,delete,list,patch,watch\n"
     "core,events.k8s.io events : EV\n"},
    {"system:controller:resource-claim-controller", "", "",
     "core pods : R\n"
     "core pods/finalizers : update\n"
     "resource.k8s.io resourceclaims : create,delete,get,list,watch\n"
     "resource.k8s.io resourceclaims,resourceclaims/status : patch,update\n"
     "core pods/status : patch,update\n"
     "core,events.k8s.io events : EV\n"
     "resource.k8s.io resourceclaims/binding : patch,update\n"},
    {"system:controller:resourcequota-controller", "", "",
     "* * : list,watch\n"
     "core resourcequotas/status : update\n"
     "core,events.k8s.io events : EV\n"},
    {"system:controller:root-ca-cert-publisher", "", "",
     "core configmaps : create,update\n"
     "core,events.k8s.io events : EV\n"},
    {"system:controller:route-controller", "", "",
     "core nodes : list,watch\n"
     "core nodes/status : patch\n"
     "core,events.k8s.io events : EV\n"},
    {"system:controller:selinux-warning-controller", "", "",
     "core,events.k8s.io events : EV\n"
     "core persistentvolumes : R\n"
     "core persistentvolumeclaims : R\n"
     "core pods : R\n"
     "storage.k8s.io csidrivers : R\n"},
    {"system:controller:service-account-controller", "", "",
     "core serviceaccounts : create\n"
     "core,events.k8s.io events : EV\n"},
    {"system:controller:service-cidrs-controller", "", "",
     "networking.k8s.io servicecidrs : RU\n"
     "networking.k8s.io servicecidrs/finalizers : patch,update\n"
     "networking.k8s.io servicecidrs/status : patch,update\n"
     "networking.k8s.io ipaddresses : R\n"
     "core,events.k8s.io events : EV\n"},
    {"system:controller:service-controller", "", "",
     "core services : R\n"
     "core services/status : patch,update\n"
     "core nodes : list,watch\n"
     "core,events.k8s.io events : EV\n"},
    {"system:controller:storage-version-garbage-collector", "", "",
     "coordination.k8s.io leases : R\n"
     "internal.apiserver.k8s.io storageversions : delete,get,list,patch,update,watch\n"
     "internal.apiserver.k8s.io storageversions/status : get,patch,update\n",
     "StorageVersionAPI"},
    {"system:controller:storage-version-migrator-controller", "", "",
     "* * : create,list,patch\n"
     "apiextensions.k8s.io customresourcedefinitions : get\n"
     "apiextensions.k8s.io customresourcedefinitions/status : patch\n"
     "storagemigration.k8s.io storageversionmigrations/status : update\n",
     "StorageVersionMigrator"},
    {"system:controller:statefulset-controller", "", "",
     "core pods : list,watch\n"
     "apps statefulsets : R\n"
     "apps statefulsets/status : update\n"
     "apps statefulsets/finalizers : update\n"
     "core pods : create,delete,get,patch,update\n"
     "apps controllerrevisions : create,delete,get,list,patch,update,watch\n"
     "core persistentvolumeclaims : create,get,list,watch\n"
     "core persistentvolumeclaims : delete,update\n"
     "core pods/finalizers : update\n"
     "core,events.k8s.io events : EV\n"},
    {"system:controller:ttl-after-finished-controller", "", "",
     "batch jobs : delete,get,list,watch\n"
     "core,events.k8s.io events : EV\n"},
    {"system:controller:ttl-controller", "", "",
     "core nodes : list,patch,update,watch\n"
     "core,events.k8s.io events : EV\n"},
    {"system:controller:validatingadmissionpolicy-status-controller", "", "",
     "admissionregistration.k8s.io validatingadmissionpolicies : R\n"
     "admissionregistration.k8s.io validatingadmissionpolicies/status : get,patch,update\n"
     "core,events.k8s.io events : EV\n"},
    {"system:controller:volumeattributesclass-protection-controller", "", "",
     "core persistentvolumeclaims : R\n"
     "core persistentvolumes : R\n"
     "storage.k8s.io volumeattributesclasses : get,list,update,watch\n"
     "core,events.k8s.io events : EV\n"},
};

// Namespace, name, rules.
constexpr RoleData kRoles[] = {
    {"kube-public", "system:controller:bootstrap-signer",
     "core configmaps : R\n"
     "core configmaps names=cluster-info : update\n"
     "core,events.k8s.io events : EV\n"},
    {"kube-system", "extension-apiserver-authentication-reader",
     "core configmaps names=extension-apiserver-authentication : R\n"},
    {"kube-system", "system::leader-locking-kube-controller-manager",
     "coordination.k8s.io leases : create,get,list,update,watch\n"
     "coordination.k8s.io leasecandidates : create,get,list,update,watch\n"},
    {"kube-system", "system::leader-locking-kube-scheduler",
     "coordination.k8s.io leases : create,get,list,update,watch\n"
     "coordination.k8s.io leasecandidates : create,get,list,update,watch\n"},
    {"kube-system", "system:controller:bootstrap-signer", "core secrets : R\n"},
    {"kube-system", "system:controller:cloud-provider", "core configmaps : create,get,list,watch\n"},
    {"kube-system", "system:controller:token-cleaner",
     "core secrets : delete,get,list,watch\n"
     "core,events.k8s.io events : EV\n"},
};

// Namespace ("" of a ClusterRoleBinding), name, role, subjects: Group:<name>, User:<name>, SA:<namespace>/<name>.
// Besides these every ClusterRole system:controller:X has a binding of the same name to SA:kube-system/X.
constexpr BindingData kBindings[] = {
    {"", "cluster-admin", "cluster-admin", "Group:system:masters"},
    {"", "system:basic-user", "system:basic-user", "Group:system:authenticated"},
    {"", "system:discovery", "system:discovery", "Group:system:authenticated"},
    {"", "system:kube-controller-manager", "system:kube-controller-manager", "User:system:kube-controller-manager"},
    {"", "system:kube-dns", "system:kube-dns", "SA:kube-system/kube-dns"},
    {"", "system:kube-scheduler", "system:kube-scheduler", "User:system:kube-scheduler"},
    {"", "system:monitoring", "system:monitoring", "Group:system:monitoring"},
    {"", "system:node", "system:node", ""},
    {"", "system:node-proxier", "system:node-proxier", "User:system:kube-proxy"},
    {"", "system:public-info-viewer", "system:public-info-viewer",
     "Group:system:authenticated Group:system:unauthenticated"},
    {"", "system:service-account-issuer-discovery", "system:service-account-issuer-discovery",
     "Group:system:serviceaccounts"},
    {"", "system:volume-scheduler", "system:volume-scheduler", "User:system:kube-scheduler"},
    {"kube-public", "system:controller:bootstrap-signer", "system:controller:bootstrap-signer",
     "SA:kube-system/bootstrap-signer"},
    {"kube-system", "system::extension-apiserver-authentication-reader", "extension-apiserver-authentication-reader",
     "User:system:kube-controller-manager User:system:kube-scheduler"},
    {"kube-system", "system::leader-locking-kube-controller-manager", "system::leader-locking-kube-controller-manager",
     "User:system:kube-controller-manager SA:kube-system/kube-controller-manager "
     "SA:kube-system/leader-election-controller"},
    {"kube-system", "system::leader-locking-kube-scheduler", "system::leader-locking-kube-scheduler",
     "User:system:kube-scheduler SA:kube-system/kube-scheduler"},
    {"kube-system", "system:controller:bootstrap-signer", "system:controller:bootstrap-signer",
     "SA:kube-system/bootstrap-signer"},
    {"kube-system", "system:controller:cloud-provider", "system:controller:cloud-provider",
     "SA:kube-system/cloud-provider"},
    {"kube-system", "system:controller:token-cleaner", "system:controller:token-cleaner",
     "SA:kube-system/token-cleaner"},
};

}  // namespace

std::span<const ClusterRoleData> ClusterRoles() { return kClusterRoles; }
std::span<const RoleData> Roles() { return kRoles; }
std::span<const BindingData> Bindings() { return kBindings; }

}  // namespace keelson::registry::bootstrap
