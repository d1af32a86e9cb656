// The official Java client (Maven Central: io.kubernetes:client-java) against a server. Prints a line for each check: ok or FAIL, its name, what was wrong.
// KUBECONFIG names the server. Pod "one" of namespace default runs on a fake kubelet (run.py).
import com.google.gson.JsonParser;
import com.google.gson.reflect.TypeToken;
import io.kubernetes.client.Discovery;
import io.kubernetes.client.custom.Quantity;
import io.kubernetes.client.custom.V1Patch;
import io.kubernetes.client.informer.ResourceEventHandler;
import io.kubernetes.client.informer.SharedInformerFactory;
import io.kubernetes.client.informer.cache.Lister;
import io.kubernetes.client.openapi.ApiClient;
import io.kubernetes.client.openapi.ApiException;
import io.kubernetes.client.openapi.apis.ApiextensionsV1Api;
import io.kubernetes.client.openapi.apis.AppsV1Api;
import io.kubernetes.client.openapi.apis.CoreV1Api;
import io.kubernetes.client.openapi.apis.CustomObjectsApi;
import io.kubernetes.client.openapi.apis.VersionApi;
import io.kubernetes.client.openapi.models.*;
import io.kubernetes.client.util.Config;
import io.kubernetes.client.util.PatchUtils;
import io.kubernetes.client.util.Watch;
import io.kubernetes.client.util.Yaml;
import io.kubernetes.client.util.generic.GenericKubernetesApi;
import io.kubernetes.client.util.generic.dynamic.DynamicKubernetesApi;
import io.kubernetes.client.util.generic.dynamic.DynamicKubernetesObject;
import java.util.*;
import java.util.concurrent.Callable;
import java.util.concurrent.CopyOnWriteArrayList;

public class Checks {
  interface Check {
    void run(String namespace) throws Exception;
  }

  static ApiClient client;
  static CoreV1Api core;

  static void equal(Object got, Object want) {
    if (!Objects.equals(got, want)) throw new AssertionError("got " + got + ", want " + want);
  }

  static void refused(int code, String part, Callable<?> call) throws Exception {
    try {
      call.call();
    } catch (ApiException error) {
      equal(error.getCode(), code);
      if (!error.getResponseBody().contains(part)) throw new AssertionError(part + " is not in " + error.getResponseBody());
      return;
    }
    throw new AssertionError("no error " + code);
  }

  static void until(String what, Callable<Boolean> condition) throws Exception {
    for (long end = System.currentTimeMillis() + 60_000; System.currentTimeMillis() < end; Thread.sleep(20)) {
      if (condition.call()) return;
    }
    throw new AssertionError("never: " + what);
  }

  static V1ConfigMap configMap(String name, Map<String, String> data) {
    return new V1ConfigMap().apiVersion("v1").kind("ConfigMap").metadata(new V1ObjectMeta().name(name)).data(data);
  }

  static V1Deployment deployment(String name) {
    V1Container container = new V1Container().name("c").image("example.com/i").resources(new V1ResourceRequirements().putRequestsItem("cpu", new Quantity("1500m")));
    return new V1Deployment().metadata(new V1ObjectMeta().name(name)).spec(new V1DeploymentSpec().replicas(2)
        .selector(new V1LabelSelector().putMatchLabelsItem("app", name)).template(new V1PodTemplateSpec()
            .metadata(new V1ObjectMeta().putLabelsItem("app", name)).spec(new V1PodSpec().addContainersItem(container))));
  }

  static V1ConfigMap patch(String namespace, String name, String format, String body) throws ApiException {
    return PatchUtils.patch(V1ConfigMap.class, () -> core.patchNamespacedConfigMap(name, namespace, new V1Patch(body)).buildCall(null), format, client);
  }

  static void typedObjects(String namespace) throws Exception {
    V1ConfigMap made = core.createNamespacedConfigMap(namespace, configMap("a", Map.of("k", "v"))).execute();
    equal(core.readNamespacedConfigMap("a", namespace).execute(), made);
    V1ConfigMap changed = Yaml.loadAs(Yaml.dump(made), V1ConfigMap.class).data(Map.of("k", "w"));
    equal(core.replaceNamespacedConfigMap("a", namespace, changed).execute().getData(), Map.of("k", "w"));
    refused(409, "AlreadyExists", () -> core.createNamespacedConfigMap(namespace, configMap("a", Map.of())).execute());
    refused(409, "the object has been modified", () -> core.replaceNamespacedConfigMap("a", namespace, made).execute());
    refused(422, "Invalid value", () -> core.createNamespacedConfigMap(namespace, configMap("Not A Name", Map.of())).execute());
    equal(core.deleteNamespacedConfigMap("a", namespace).execute().getStatus(), "Success");
    refused(404, "NotFound", () -> core.readNamespacedConfigMap("a", namespace).execute());
    V1Secret secret = core.createNamespacedSecret(namespace, new V1Secret().metadata(new V1ObjectMeta().generateName("s-")).putStringDataItem("p", "x")).execute();
    equal(new String(secret.getData().get("p")), "x");
    core.deleteCollectionNamespacedSecret(namespace).execute();
    equal(core.listNamespacedSecret(namespace).execute().getItems().size(), 0);
  }

  static void scaleAndStatus(String namespace) throws Exception {
    AppsV1Api apps = new AppsV1Api(client);
    V1Deployment made = apps.createNamespacedDeployment(namespace, deployment("d")).execute();
    equal(made.getSpec().getStrategy().getType(), "RollingUpdate");
    equal(made.getSpec().getTemplate().getSpec().getContainers().get(0).getResources().getRequests().get("cpu"), new Quantity("1500m"));
    V1Scale scale = apps.readNamespacedDeploymentScale("d", namespace).execute();
    scale.getSpec().setReplicas(4);
    equal(apps.replaceNamespacedDeploymentScale("d", namespace, scale).execute().getSpec().getReplicas(), 4);
    V1Deployment status = PatchUtils.patch(V1Deployment.class, () -> apps.patchNamespacedDeploymentStatus("d", namespace,
        new V1Patch("{\"status\":{\"replicas\":4,\"observedGeneration\":2}}")).buildCall(null), V1Patch.PATCH_FORMAT_JSON_MERGE_PATCH, client);
    equal(status.getStatus().getReplicas(), 4);
  }

  static void patches(String namespace) throws Exception {
    core.createNamespacedConfigMap(namespace, configMap("p", Map.of("a", "1", "b", "2"))).execute();
    equal(patch(namespace, "p", V1Patch.PATCH_FORMAT_JSON_MERGE_PATCH, "{\"data\":{\"a\":null,\"c\":\"3\"}}").getData(), Map.of("b", "2", "c", "3"));
    equal(patch(namespace, "p", V1Patch.PATCH_FORMAT_JSON_PATCH, "[{\"op\":\"replace\",\"path\":\"/data/b\",\"value\":\"4\"}]").getData(), Map.of("b", "4", "c", "3"));
    equal(patch(namespace, "p", V1Patch.PATCH_FORMAT_STRATEGIC_MERGE_PATCH, "{\"data\":{\"d\":\"5\"}}").getData(), Map.of("b", "4", "c", "3", "d", "5"));
    refused(422, "Invalid", () -> patch(namespace, "p", V1Patch.PATCH_FORMAT_JSON_PATCH, "[{\"op\":\"remove\",\"path\":\"/data/none\"}]"));
  }

  static V1ConfigMap applied(String namespace, String manager, boolean force, Map<String, String> data) throws ApiException {
    // As text: the typed client writes empty maps, which an apply would own.
    String fields = data.isEmpty() ? "" : ",\"data\":" + client.getJSON().serialize(data);
    V1Patch body = new V1Patch("{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"ssa\"}" + fields + "}");
    return PatchUtils.patch(V1ConfigMap.class, () -> core.patchNamespacedConfigMap("ssa", namespace, body).fieldManager(manager).force(force).buildCall(null),
        V1Patch.PATCH_FORMAT_APPLY_YAML, client);
  }

  static void apply(String namespace) throws Exception {
    equal(applied(namespace, "one", false, Map.of("a", "1", "b", "1")).getData(), Map.of("a", "1", "b", "1"));
    refused(409, "conflict with", () -> applied(namespace, "two", false, Map.of("a", "2")));
    equal(applied(namespace, "two", true, Map.of("a", "2")).getData(), Map.of("a", "2", "b", "1"));
    equal(applied(namespace, "one", false, Map.of()).getData(), Map.of("a", "2"));
  }

  static void pagedLists(String namespace) throws Exception {
    for (int i = 0; i < 25; i++) {
      V1ConfigMap object = configMap("n-" + (10 + i), Map.of());
      object.getMetadata().putLabelsItem("odd", String.valueOf(i % 2));
      core.createNamespacedConfigMap(namespace, object).execute();
    }
    List<String> names = new ArrayList<>();
    String token = null;
    int pages = 0;
    do {
      V1ConfigMapList page = core.listNamespacedConfigMap(namespace).labelSelector("odd").limit(10)._continue(token).execute();
      page.getItems().forEach(item -> names.add(item.getMetadata().getName()));
      token = page.getMetadata().getContinue();
      pages++;
    } while (token != null && !token.isEmpty());
    equal(List.of(names.size(), pages), List.of(25, 3));
    equal(core.listNamespacedConfigMap(namespace).labelSelector("odd=1").execute().getItems().size(), 12);
    equal(core.listNamespacedConfigMap(namespace).fieldSelector("metadata.name=n-13").execute().getItems().size(), 1);
    refused(400, "continue key is not valid", () -> core.listNamespacedConfigMap(namespace).limit(1)._continue("rubbish").execute());
  }

  static List<String> watched(String namespace, String from, int count) throws Exception {
    List<String> seen = new ArrayList<>();
    try (Watch<V1ConfigMap> watch = Watch.createWatch(client, core.listNamespacedConfigMap(namespace).watch(true).resourceVersion(from).buildCall(null),
        new TypeToken<Watch.Response<V1ConfigMap>>() {}.getType())) {
      for (Watch.Response<V1ConfigMap> event : watch) {
        V1ObjectMeta metadata = event.object.getMetadata();
        if (metadata.getName().startsWith("w-")) seen.add(event.type + " " + metadata.getName() + " " + metadata.getResourceVersion());
        if (seen.size() == count) break;
      }
    }
    return seen;
  }

  static void watchAndResume(String namespace) throws Exception {
    String start = core.listNamespacedConfigMap(namespace).execute().getMetadata().getResourceVersion();
    for (int i = 0; i < 3; i++) core.createNamespacedConfigMap(namespace, configMap("w-" + i, Map.of())).execute();
    core.deleteNamespacedConfigMap("w-1", namespace).execute();
    List<String> first = watched(namespace, start, 4);
    equal(first.stream().map(e -> e.substring(0, e.lastIndexOf(' '))).toList(), List.of("ADDED w-0", "ADDED w-1", "ADDED w-2", "DELETED w-1"));
    String second = first.get(1);
    equal(watched(namespace, second.substring(second.lastIndexOf(' ') + 1), 2), first.subList(2, 4));
  }

  static void informer(String namespace) throws Exception {
    core.createNamespacedConfigMap(namespace, configMap("before", Map.of())).execute();
    SharedInformerFactory factory = new SharedInformerFactory(client);
    var informer = factory.sharedIndexInformerFor(new GenericKubernetesApi<>(V1ConfigMap.class, V1ConfigMapList.class, "", "v1", "configmaps", client), V1ConfigMap.class, 0, namespace);
    List<String> seen = new CopyOnWriteArrayList<>();
    informer.addEventHandler(new ResourceEventHandler<V1ConfigMap>() {
      public void onAdd(V1ConfigMap object) {
        seen.add("add " + object.getMetadata().getName());
      }

      public void onUpdate(V1ConfigMap before, V1ConfigMap object) {
        seen.add("update " + object.getMetadata().getName());
      }

      public void onDelete(V1ConfigMap object, boolean unknown) {
        seen.add("delete " + object.getMetadata().getName());
      }
    });
    factory.startAllRegisteredInformers();
    until("synced", informer::hasSynced);
    core.createNamespacedConfigMap(namespace, configMap("after", Map.of())).execute();
    patch(namespace, "after", V1Patch.PATCH_FORMAT_JSON_MERGE_PATCH, "{\"data\":{\"x\":\"y\"}}");
    core.deleteNamespacedConfigMap("after", namespace).execute();
    until("all events", () -> seen.contains("delete after"));
    equal(seen.stream().filter(e -> e.endsWith("after")).toList(), List.of("add after", "update after", "delete after"));
    equal(new Lister<>(informer.getIndexer()).namespace(namespace).get("before") != null, true);
    factory.stopAllRegisteredInformers();
  }

  static void customObjects(String namespace) throws Exception {
    ApiextensionsV1Api definitions = new ApiextensionsV1Api(client);
    String name = "beans.clients.example.com";
    // Not by the typed client, whose empty lists and maps of the schema no API server accepts.
    DynamicKubernetesApi raw = new DynamicKubernetesApi("apiextensions.k8s.io", "v1", "customresourcedefinitions", client);
    raw.create(new DynamicKubernetesObject(JsonParser.parseString("""
        {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "beans.clients.example.com"}, "spec": {
          "group": "clients.example.com", "scope": "Namespaced", "names": {"plural": "beans", "kind": "Bean"}, "versions": [{
            "name": "v1", "served": true, "storage": true, "subresources": {"status": {}}, "schema": {"openAPIV3Schema": {"type": "object", "properties": {
              "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
              "spec": {"type": "object", "properties": {"color": {"type": "string", "enum": ["red"]}, "size": {"type": "integer", "default": 3}}}}}}}]}}
        """).getAsJsonObject())).throwsApiException();
    until("established", () -> {
      var status = definitions.readCustomResourceDefinition(name).execute().getStatus();
      return status != null && status.getConditions() != null && status.getConditions().stream().anyMatch(c -> c.getType().equals("Established") && c.getStatus().equals("True"));
    });
    DynamicKubernetesApi api = new DynamicKubernetesApi("clients.example.com", "v1", "beans", client);
    String text = "{\"apiVersion\":\"clients.example.com/v1\",\"kind\":\"Bean\",\"metadata\":{\"name\":\"x\",\"namespace\":\"" + namespace + "\"},\"spec\":{\"color\":\"red\"}}";
    DynamicKubernetesObject made = api.create(new DynamicKubernetesObject(JsonParser.parseString(text).getAsJsonObject())).throwsApiException().getObject();
    equal(made.getRaw().getAsJsonObject("spec").toString(), "{\"color\":\"red\",\"size\":3}");
    var bad = api.create(new DynamicKubernetesObject(JsonParser.parseString(text.replace("\"x\"", "\"y\"").replace("red", "blue")).getAsJsonObject()));
    equal(bad.getHttpStatusCode() + " " + bad.getStatus().getMessage().contains("Unsupported value"), "422 true");
    made.getRaw().getAsJsonObject("spec").addProperty("size", 4);
    equal(api.update(made).throwsApiException().getObject().getRaw().getAsJsonObject("spec").get("size").getAsInt(), 4);
    equal(api.list(namespace).throwsApiException().getObject().getItems().size(), 1);
    CustomObjectsApi custom = new CustomObjectsApi(client);
    Object status = PatchUtils.patch(Object.class, () -> custom.patchNamespacedCustomObjectStatus("clients.example.com", "v1", namespace, "beans", "x", Map.of("status", Map.of("ready", true))).buildCall(null),
        V1Patch.PATCH_FORMAT_JSON_MERGE_PATCH, client);
    equal(((Map<?, ?>) ((Map<?, ?>) status).get("status")).get("ready"), true);
    equal(api.delete(namespace, "x").isSuccess(), true);
    definitions.deleteCustomResourceDefinition(name).execute();
  }

  static void discovery(String namespace) throws Exception {
    Set<Discovery.APIResource> resources = new Discovery(client).findAll();
    for (String kind : List.of("Deployment", "Job", "CustomResourceDefinition", "Pod")) equal(kind + resources.stream().anyMatch(r -> r.getKind().equals(kind)), kind + "true");
    equal(new VersionApi(client).getCode().execute().getMajor(), "1");
    equal(core.getAPIResources().execute().getResources().stream().anyMatch(r -> r.getName().equals("pods/exec")), true);
  }

  static void pods(String namespace) throws Exception {
    V1Pod pod = core.readNamespacedPod("one", "default").execute();
    equal(pod.getStatus().getPhase(), "Running");
    V1Eviction eviction = new V1Eviction().metadata(new V1ObjectMeta().name("one").namespace("default")).deleteOptions(new V1DeleteOptions().addDryRunItem("All"));
    // execute() takes the answer, a Status, for an Eviction.
    try (var answer = core.createNamespacedPodEviction("one", "default", eviction).buildCall(null).execute()) {
      equal(answer.code(), 201);
    }
    core.createNamespacedServiceAccount(namespace, new V1ServiceAccount().metadata(new V1ObjectMeta().name("sa"))).execute();
    var token = core.createNamespacedServiceAccountToken("sa", namespace, new AuthenticationV1TokenRequest().spec(new V1TokenRequestSpec().addAudiencesItem("a"))).execute();
    equal(token.getStatus().getToken().split("\\.").length, 3);
  }

  public static void main(String[] arguments) throws Exception {
    client = Config.fromConfig(System.getenv("KUBECONFIG"));
    client.setReadTimeout(0);
    core = new CoreV1Api(client);
    Map<String, Check> checks = new LinkedHashMap<>();
    checks.put("typed-objects", Checks::typedObjects);
    checks.put("scale-and-status", Checks::scaleAndStatus);
    checks.put("patches", Checks::patches);
    checks.put("apply", Checks::apply);
    checks.put("paged-lists", Checks::pagedLists);
    checks.put("watch-and-resume", Checks::watchAndResume);
    checks.put("informer", Checks::informer);
    checks.put("custom-objects", Checks::customObjects);
    checks.put("discovery", Checks::discovery);
    checks.put("pods", Checks::pods);
    for (var entry : checks.entrySet()) {
      String namespace = core.createNamespace(new V1Namespace().metadata(new V1ObjectMeta().generateName("java-"))).execute().getMetadata().getName();
      try {
        entry.getValue().run(namespace);
        System.out.println("ok   " + entry.getKey());
      } catch (Throwable error) {
        System.out.println("FAIL " + entry.getKey() + " " + error.toString().replaceAll("\\s+", " "));
      }
      core.deleteNamespace(namespace).execute();
    }
    System.exit(0);
  }
}
