// The fabric8 Java client (Maven Central: io.fabric8:kubernetes-client) against a server. Prints a line for each check: ok or FAIL, its name, what was
// wrong. KUBECONFIG names the server. Pod "one" of namespace default runs on a fake kubelet (run.py).
import io.fabric8.kubernetes.api.model.*;
import io.fabric8.kubernetes.api.model.apiextensions.v1.CustomResourceDefinition;
import io.fabric8.kubernetes.api.model.apps.Deployment;
import io.fabric8.kubernetes.api.model.apps.DeploymentBuilder;
import io.fabric8.kubernetes.api.model.coordination.v1.Lease;
import io.fabric8.kubernetes.api.model.coordination.v1.LeaseBuilder;
import io.fabric8.kubernetes.client.*;
import io.fabric8.kubernetes.client.dsl.base.PatchContext;
import io.fabric8.kubernetes.client.dsl.base.PatchType;
import io.fabric8.kubernetes.client.dsl.base.ResourceDefinitionContext;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import io.fabric8.kubernetes.client.informers.SharedIndexInformer;
import java.util.*;
import java.util.concurrent.Callable;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;

public class Checks {
  interface Check {
    void run(String namespace) throws Exception;
  }

  static KubernetesClient client;

  static void equal(Object got, Object want) {
    if (!Objects.equals(got, want)) throw new AssertionError("got " + got + ", want " + want);
  }

  static void refused(int code, String part, Callable<?> call) throws Exception {
    try {
      call.call();
    } catch (KubernetesClientException error) {
      equal(error.getCode(), code);
      if (!error.getMessage().contains(part)) throw new AssertionError(part + " is not in " + error.getMessage());
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

  static ConfigMap configMap(String namespace, String name, Map<String, String> data) {
    return new ConfigMapBuilder().withNewMetadata().withNamespace(namespace).withName(name).endMetadata().withData(data).build();
  }

  static void typedObjects(String namespace) throws Exception {
    var maps = client.configMaps().inNamespace(namespace);
    ConfigMap made = maps.resource(configMap(namespace, "a", Map.of("k", "v"))).create();
    equal(maps.withName("a").get(), made);
    ConfigMap changed = maps.withName("a").edit(object -> new ConfigMapBuilder(object).addToData("k", "w").build());
    equal(changed.getData(), Map.of("k", "w"));
    refused(409, "already exists", () -> maps.resource(configMap(namespace, "a", Map.of())).create());
    refused(409, "the object has been modified", () -> maps.resource(made).update());
    refused(422, "Invalid value", () -> maps.resource(configMap(namespace, "Not A Name", Map.of())).create());
    equal(maps.withName("a").delete().size(), 1);
    equal(maps.withName("a").get(), null);
    Secret secret = client.secrets().inNamespace(namespace).resource(new SecretBuilder().withNewMetadata().withGenerateName("s-").endMetadata().addToStringData("p", "x").build()).create();
    equal(secret.getData(), Map.of("p", "eA=="));
    client.secrets().inNamespace(namespace).delete();
    equal(client.secrets().inNamespace(namespace).list().getItems().size(), 0);
  }

  static void scaleAndStatus(String namespace) throws Exception {
    Deployment body = new DeploymentBuilder().withNewMetadata().withName("d").endMetadata().withNewSpec().withReplicas(2).withNewSelector().addToMatchLabels("app", "d").endSelector()
        .withNewTemplate().withNewMetadata().addToLabels("app", "d").endMetadata().withNewSpec().addNewContainer().withName("c").withImage("example.com/i")
        .withNewResources().addToRequests("cpu", new Quantity("1500m")).endResources().endContainer().endSpec().endTemplate().endSpec().build();
    var deployment = client.apps().deployments().inNamespace(namespace).resource(body);
    Deployment made = deployment.create();
    equal(made.getSpec().getTemplate().getSpec().getContainers().get(0).getResources().getRequests().get("cpu"), new Quantity("1500m"));
    equal(client.apps().deployments().inNamespace(namespace).withName("d").scale().getSpec().getReplicas(), 2);
    made.setStatus(new io.fabric8.kubernetes.api.model.apps.DeploymentStatusBuilder().withReplicas(2).withObservedGeneration(1L).build());
    equal(client.resource(made).updateStatus().getStatus().getReplicas(), 2);
  }

  static void patches(String namespace) throws Exception {
    var maps = client.configMaps().inNamespace(namespace);
    maps.resource(configMap(namespace, "p", Map.of("a", "1", "b", "2"))).create();
    equal(maps.withName("p").patch(PatchContext.of(PatchType.JSON_MERGE), "{\"data\":{\"a\":null,\"c\":\"3\"}}").getData(), Map.of("b", "2", "c", "3"));
    equal(maps.withName("p").patch(PatchContext.of(PatchType.JSON), "[{\"op\":\"replace\",\"path\":\"/data/b\",\"value\":\"4\"}]").getData(), Map.of("b", "4", "c", "3"));
    equal(maps.withName("p").patch(PatchContext.of(PatchType.STRATEGIC_MERGE), "{\"data\":{\"d\":\"5\"}}").getData(), Map.of("b", "4", "c", "3", "d", "5"));
    refused(422, "the server rejected our request", () -> maps.withName("p").patch(PatchContext.of(PatchType.JSON), "[{\"op\":\"test\",\"path\":\"/data/b\",\"value\":\"no\"}]"));
    equal(maps.withName("p").dryRun().patch(PatchContext.of(PatchType.JSON_MERGE), "{\"data\":{\"z\":\"9\"}}").getData().size(), 4);
    equal(maps.withName("p").get().getData().size(), 3);
  }

  static ConfigMap applied(String namespace, String manager, boolean force, Map<String, String> data) {
    var resource = client.configMaps().inNamespace(namespace).resource(configMap(namespace, "ssa", data)).fieldManager(manager);
    return force ? resource.forceConflicts().serverSideApply() : resource.serverSideApply();
  }

  static void apply(String namespace) throws Exception {
    equal(applied(namespace, "one", false, Map.of("a", "1", "b", "1")).getMetadata().getManagedFields().get(0).getManager(), "one");
    refused(409, "conflict with", () -> applied(namespace, "two", false, Map.of("a", "2")));
    equal(applied(namespace, "two", true, Map.of("a", "2")).getData(), Map.of("a", "2", "b", "1"));
    equal(applied(namespace, "one", false, Map.of()).getData(), Map.of("a", "2"));
  }

  static void pagedLists(String namespace) throws Exception {
    for (int i = 0; i < 25; i++) {
      ConfigMap object = configMap(namespace, "n-" + (10 + i), Map.of());
      object.getMetadata().setLabels(Map.of("odd", String.valueOf(i % 2)));
      client.resource(object).create();
    }
    var maps = client.configMaps().inNamespace(namespace);
    List<String> names = new ArrayList<>();
    String token = null;
    int pages = 0;
    do {
      ConfigMapList page = maps.withLabel("odd").list(new ListOptionsBuilder().withLimit(10L).withContinue(token).build());
      page.getItems().forEach(item -> names.add(item.getMetadata().getName()));
      token = page.getMetadata().getContinue();
      pages++;
    } while (token != null && !token.isEmpty());
    equal(List.of(names.size(), pages), List.of(25, 3));
    equal(maps.withLabelIn("odd", "1", "7").list().getItems().size(), 12);
    equal(maps.withField("metadata.name", "n-13").list().getItems().size(), 1);
    refused(400, "continue key is not valid", () -> maps.list(new ListOptionsBuilder().withLimit(1L).withContinue("rubbish").build()));
  }

  static void watchAndInformer(String namespace) throws Exception {
    var maps = client.configMaps().inNamespace(namespace);
    client.resource(configMap(namespace, "before", Map.of())).create();
    List<String> seen = new CopyOnWriteArrayList<>();
    SharedIndexInformer<ConfigMap> informer = maps.inform(new ResourceEventHandler<>() {
      public void onAdd(ConfigMap object) {
        seen.add("add " + object.getMetadata().getName());
      }

      public void onUpdate(ConfigMap before, ConfigMap object) {
        seen.add("update " + object.getMetadata().getName());
      }

      public void onDelete(ConfigMap object, boolean unknown) {
        seen.add("delete " + object.getMetadata().getName());
      }
    });
    until("synced", informer::hasSynced);
    List<String> watched = new CopyOnWriteArrayList<>();
    Watch watch = maps.withName("after").watch(new Watcher<>() {
      public void eventReceived(Action action, ConfigMap object) {
        watched.add(action + " " + object.getData());
      }

      public void onClose(WatcherException cause) {}
    });
    client.resource(configMap(namespace, "after", Map.of("x", "1"))).create();
    maps.withName("after").patch(PatchContext.of(PatchType.JSON_MERGE), "{\"data\":{\"x\":\"y\"}}");
    maps.withName("after").delete();
    until("all events", () -> seen.contains("delete after") && watched.size() == 3);
    equal(seen.stream().filter(e -> e.endsWith("after")).toList(), List.of("add after", "update after", "delete after"));
    equal(watched, List.of("ADDED {x=1}", "MODIFIED {x=y}", "DELETED {x=y}"));
    equal(informer.getStore().list().stream().anyMatch(o -> o.getMetadata().getName().equals("before")), true);
    watch.close();
    informer.close();
  }

  static void genericResources(String namespace) throws Exception {
    CustomResourceDefinition definition = client.getKubernetesSerialization().unmarshal("""
        apiVersion: apiextensions.k8s.io/v1
        kind: CustomResourceDefinition
        metadata: {name: fabrics.clients.example.com}
        spec:
          group: clients.example.com
          scope: Namespaced
          names: {plural: fabrics, kind: Fabric}
          versions:
          - name: v1
            served: true
            storage: true
            subresources: {status: {}}
            schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {color: {type: string, enum: [red]}, size: {type: integer, default: 3}}}}}}
        """, CustomResourceDefinition.class);
    client.apiextensions().v1().customResourceDefinitions().resource(definition).serverSideApply();
    client.apiextensions().v1().customResourceDefinitions().withName("fabrics.clients.example.com").waitUntilCondition(d -> d != null && d.getStatus() != null
        && d.getStatus().getConditions().stream().anyMatch(c -> c.getType().equals("Established") && c.getStatus().equals("True")), 60, TimeUnit.SECONDS);
    var context = new ResourceDefinitionContext.Builder().withGroup("clients.example.com").withVersion("v1").withKind("Fabric").withPlural("fabrics").withNamespaced(true).build();
    var api = client.genericKubernetesResources(context).inNamespace(namespace);
    GenericKubernetesResource body = new GenericKubernetesResourceBuilder().withApiVersion("clients.example.com/v1").withKind("Fabric").withNewMetadata().withName("x").endMetadata()
        .addToAdditionalProperties("spec", Map.of("color", "red")).build();
    GenericKubernetesResource made = api.resource(body).create();
    equal(made.get("spec"), Map.of("color", "red", "size", 3));
    refused(422, "Unsupported value", () -> api.withName("x").patch(PatchContext.of(PatchType.JSON_MERGE), "{\"spec\":{\"color\":\"blue\"}}"));
    made.setAdditionalProperty("spec", Map.of("color", "red", "size", 4));
    equal(api.resource(made).update().get("spec"), Map.of("color", "red", "size", 4));
    equal(api.list().getItems().size(), 1);
    client.apiextensions().v1().customResourceDefinitions().withName("fabrics.clients.example.com").delete();
  }

  static void leasesAndReviews(String namespace) throws Exception {
    Lease lease = client.leases().inNamespace(namespace).resource(new LeaseBuilder().withNewMetadata().withName("l").endMetadata().withNewSpec().withHolderIdentity("me").withLeaseDurationSeconds(15).endSpec().build()).create();
    lease.getSpec().setHolderIdentity("you");
    equal(client.leases().inNamespace(namespace).resource(lease).update().getSpec().getHolderIdentity(), "you");
    var review = new io.fabric8.kubernetes.api.model.authorization.v1.SelfSubjectAccessReviewBuilder().withNewSpec().withNewResourceAttributes().withVerb("get").withResource("pods").endResourceAttributes().endSpec().build();
    equal(client.authorization().v1().selfSubjectAccessReview().create(review).getStatus().getAllowed(), true);
    equal(client.getKubernetesVersion().getMajor(), "1");
    equal(client.hasApiGroup("apps", true) && client.supports(Deployment.class), true);
  }

  public static void main(String[] arguments) throws Exception {
    client = new KubernetesClientBuilder().build();
    Map<String, Check> checks = new LinkedHashMap<>();
    checks.put("typed-objects", Checks::typedObjects);
    checks.put("scale-and-status", Checks::scaleAndStatus);
    checks.put("patches", Checks::patches);
    checks.put("apply", Checks::apply);
    checks.put("paged-lists", Checks::pagedLists);
    checks.put("watch-and-informer", Checks::watchAndInformer);
    checks.put("generic-resources", Checks::genericResources);
    checks.put("leases-and-reviews", Checks::leasesAndReviews);
    for (var entry : checks.entrySet()) {
      String namespace = client.resource(new NamespaceBuilder().withNewMetadata().withGenerateName("fabric8-").endMetadata().build()).create().getMetadata().getName();
      try {
        entry.getValue().run(namespace);
        System.out.println("ok   " + entry.getKey());
      } catch (Throwable error) {
        System.out.println("FAIL " + entry.getKey() + " " + error.toString().replaceAll("\\s+", " "));
      }
      client.namespaces().withName(namespace).delete();
    }
    System.exit(0);
  }
}
