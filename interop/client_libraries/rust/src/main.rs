// The Rust client (crates.io: kube) against a server. Prints a line for each check: ok or FAIL, its name, what was wrong.
// KUBECONFIG names the server. Pod "one" of namespace default runs on a fake kubelet (run.py).
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, Secret, ServiceAccount};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, ObjectMeta, Patch, PatchParams, PostParams, Preconditions, WatchEvent, WatchParams};
use kube::runtime::controller::Action;
use kube::runtime::reflector::store;
use kube::runtime::wait::{await_condition, conditions};
use kube::runtime::{Controller, WatchStreamExt, reflector, watcher};
use kube::{Api, Client, CustomResource, CustomResourceExt, Discovery, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

type Failure = Box<dyn std::error::Error + Send + Sync>;
type Outcome = Result<(), Failure>;
type Check = fn(Client, String) -> Pin<Box<dyn Future<Output = Outcome>>>;

#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, JsonSchema)]
#[kube(group = "clients.example.com", version = "v1", kind = "Crate", plural = "crates", namespaced, status = "CrateStatus")]
#[kube(scale(spec_replicas_path = ".spec.replicas", status_replicas_path = ".status.replicas"))]
struct CrateSpec {
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 10))]
    replicas: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    color: Option<Color>,
}

#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, JsonSchema)]
enum Color {
    Red,
    Green,
}

#[derive(Serialize, Deserialize, Clone, Debug, Default, JsonSchema)]
struct CrateStatus {
    replicas: i32,
}

fn one() -> i32 {
    1
}

fn equal<T: PartialEq + Debug>(got: T, want: T) -> Outcome {
    if got == want { Ok(()) } else { Err(format!("got {got:?}, want {want:?}").into()) }
}

fn refused<T>(result: kube::Result<T>, code: u16, reason: &str, part: &str) -> Outcome {
    match result {
        Err(kube::Error::Api(status)) if status.code == code && status.reason == reason && status.message.contains(part) => Ok(()),
        Err(error) => Err(format!("another error than {code} {reason} {part}: {error:?}").into()),
        Ok(_) => Err(format!("no error {code} {reason}").into()),
    }
}

fn config_map(name: &str, data: &[(&str, &str)]) -> ConfigMap {
    ConfigMap { metadata: ObjectMeta { name: Some(name.into()), ..Default::default() }, data: Some(map(data)), ..Default::default() }
}

fn map(data: &[(&str, &str)]) -> BTreeMap<String, String> {
    data.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect()
}

fn deployment(name: &str) -> serde_json::Result<Deployment> {
    serde_json::from_value(json!({"metadata": {"name": name}, "spec": {"replicas": 2, "selector": {"matchLabels": {"app": name}}, "template": {
        "metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "example.com/i"}]}}}}))
}

async fn typed_objects(client: Client, namespace: String) -> Outcome {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
    let post = PostParams::default();
    let made = api.create(&post, &config_map("a", &[("k", "v")])).await?;
    equal(api.get("a").await?, made.clone())?;
    equal(api.get_metadata("a").await?.uid(), made.uid())?;
    equal(api.get_opt("none").await?.is_none(), true)?;
    let replaced = api.replace("a", &post, &ConfigMap { data: Some(map(&[("k", "w")])), ..made.clone() }).await?;
    equal(replaced.data, Some(map(&[("k", "w")])))?;
    refused(api.create(&post, &config_map("a", &[])).await, 409, "AlreadyExists", "already exists")?;
    refused(api.replace("a", &post, &made).await, 409, "Conflict", "the object has been modified")?;
    refused(api.create(&post, &config_map("Not A Name", &[])).await, 422, "Invalid", "Invalid value")?;
    let other = Preconditions { uid: Some("other".into()), resource_version: None };
    refused(api.delete("a", &DeleteParams::default().preconditions(other)).await, 409, "Conflict", "the UID in the precondition (other) does not match")?;
    equal(api.delete("a", &DeleteParams::default().dry_run()).await?.is_right(), true)?;
    equal(api.delete("a", &DeleteParams::default()).await?.right().and_then(|s| s.details).map(|d| d.name), Some("a".into()))?;
    refused(api.get("a").await, 404, "NotFound", "not found")?;
    let secrets: Api<Secret> = Api::namespaced(client, &namespace);
    let metadata = ObjectMeta { generate_name: Some("s-".into()), ..Default::default() };
    let secret = secrets.create(&post, &Secret { metadata, string_data: Some(map(&[("p", "x")])), ..Default::default() }).await?;
    equal((secret.name_any().starts_with("s-"), secret.data.unwrap_or_default()["p"].0.clone(), secret.type_), (true, b"x".to_vec(), Some("Opaque".into())))?;
    secrets.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
    equal(secrets.list(&ListParams::default()).await?.items.len(), 0)
}

async fn scale_and_status(client: Client, namespace: String) -> Outcome {
    let api: Api<Deployment> = Api::namespaced(client, &namespace);
    let made = api.create(&PostParams::default(), &deployment("d")?).await?;
    equal(made.spec.and_then(|s| s.strategy).and_then(|s| s.type_), Some("RollingUpdate".into()))?;
    let mut scale = api.get_scale("d").await?;
    equal(scale.spec.as_ref().and_then(|s| s.replicas), Some(2))?;
    scale.spec.get_or_insert_default().replicas = Some(4);
    equal(api.replace_scale("d", &PostParams::default(), &scale).await?.spec.and_then(|s| s.replicas), Some(4))?;
    let five = Patch::Merge(json!({"spec": {"replicas": 5}}));
    equal(api.patch_scale("d", &PatchParams::default(), &five).await?.spec.and_then(|s| s.replicas), Some(5))?;
    let status = Patch::Merge(json!({"status": {"replicas": 5, "observedGeneration": 3}}));
    equal(api.patch_status("d", &PatchParams::default(), &status).await?.status.and_then(|s| s.replicas), Some(5))?;
    equal(api.get_status("d").await?.metadata.generation, Some(3))?;
    let restarted = api.restart("d").await?;
    let annotations = restarted.spec.map(|s| s.template).and_then(|t| t.metadata).and_then(|m| m.annotations).unwrap_or_default();
    equal(annotations.contains_key("kube.kubernetes.io/restartedAt"), true)
}

async fn patches(client: Client, namespace: String) -> Outcome {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
    let with = PatchParams::default();
    api.create(&PostParams::default(), &config_map("p", &[("a", "1"), ("b", "2")])).await?;
    let merged = api.patch("p", &with, &Patch::Merge(json!({"data": {"a": null, "c": "3"}}))).await?;
    equal(merged.data, Some(map(&[("b", "2"), ("c", "3")])))?;
    let strategic = api.patch("p", &with, &Patch::Strategic(json!({"data": {"d": "5"}}))).await?;
    equal(strategic.data, Some(map(&[("b", "2"), ("c", "3"), ("d", "5")])))?;
    let strict = PatchParams { field_manager: Some("m".into()), ..Default::default() }.validation_strict();
    refused(api.patch("p", &strict, &Patch::Merge(json!({"dato": {}}))).await, 422, "Invalid", "unknown field")?;
    let dry = PatchParams { dry_run: true, ..Default::default() };
    equal(api.patch("p", &dry, &Patch::Merge(json!({"data": {"z": "9"}}))).await?.data.map(|d| d.len()), Some(4))?;
    equal(api.get("p").await?.data.map(|d| d.len()), Some(3))?;
    // Strategic: containers merge by name.
    let apps: Api<Deployment> = Api::namespaced(client, &namespace);
    apps.create(&PostParams::default(), &deployment("s")?).await?;
    let patch = Patch::Strategic(json!({"spec": {"template": {"spec": {"containers": [{"name": "e", "image": "j"}]}}}}));
    let names = apps.patch("s", &with, &patch).await?.spec.and_then(|s| s.template.spec).map(|s| s.containers.into_iter().map(|c| c.name).collect::<Vec<_>>());
    equal(names, Some(vec!["e".into(), "c".into()]))
}

async fn apply(client: Client, namespace: String) -> Outcome {
    let api: Api<ConfigMap> = Api::namespaced(client, &namespace);
    let body = |data: &[(&str, &str)]| Patch::Apply(config_map("ssa", data));
    let made = api.patch("ssa", &PatchParams::apply("one"), &body(&[("a", "1"), ("b", "1")])).await?;
    equal(made.managed_fields().iter().map(|m| m.manager.clone().unwrap_or_default()).collect::<Vec<_>>(), vec!["one".to_string()])?;
    refused(api.patch("ssa", &PatchParams::apply("two"), &body(&[("a", "2")])).await, 409, "Conflict", "conflict with \"one\"")?;
    let forced = api.patch("ssa", &PatchParams::apply("two").force(), &body(&[("a", "2")])).await?;
    equal(forced.data, Some(map(&[("a", "2"), ("b", "1")])))?;
    let given_up = api.patch("ssa", &PatchParams::apply("one"), &body(&[])).await?;
    equal(given_up.data, Some(map(&[("a", "2")])))
}

async fn paged_lists(client: Client, namespace: String) -> Outcome {
    let api: Api<ConfigMap> = Api::namespaced(client, &namespace);
    for i in 0..25 {
        let mut object = config_map(&format!("n-{:02}", i), &[]);
        object.labels_mut().insert("odd".into(), (i % 2).to_string());
        api.create(&PostParams::default(), &object).await?;
    }
    let (mut names, mut pages, mut with) = (vec![], 0, ListParams::default().labels("odd").limit(10));
    loop {
        let page = api.list(&with).await?;
        names.extend(page.items.iter().map(|item| item.name_any()));
        pages += 1;
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => with = with.continue_token(&token),
            None => break,
        }
    }
    equal((names.len(), pages, names.is_sorted()), (25, 3, true))?;
    equal(api.list(&ListParams::default().labels("odd=1")).await?.items.len(), 12)?;
    equal(api.list_metadata(&ListParams::default().fields("metadata.name=n-03")).await?.items.len(), 1)?;
    equal(api.list(&ListParams::default().match_any()).await?.items.len() >= 25, true)?;
    refused(api.list(&ListParams::default().limit(1).continue_token("rubbish")).await, 400, "BadRequest", "continue key is not valid")
}

async fn watch_and_resume(client: Client, namespace: String) -> Outcome {
    let api: Api<ConfigMap> = Api::namespaced(client, &namespace);
    let start = api.list(&ListParams::default()).await?.metadata.resource_version.unwrap_or_default();
    for i in 0..3 {
        api.create(&PostParams::default(), &config_map(&format!("w-{i}"), &[])).await?;
    }
    api.delete("w-1", &DeleteParams::default()).await?;
    let take = async |from: &str, count: usize| -> Result<Vec<(String, String, String)>, Failure> {
        let stream = api.watch(&WatchParams::default().labels("!other"), from).await?;
        let events = stream.try_filter_map(|event| async move {
            Ok(match event {
                WatchEvent::Added(o) => Some(("added", o)),
                WatchEvent::Modified(o) => Some(("modified", o)),
                WatchEvent::Deleted(o) => Some(("deleted", o)),
                _ => None,
            }
            .filter(|(_, o)| o.name_any().starts_with("w-"))
            .map(|(kind, o)| (kind.to_string(), o.name_any(), o.resource_version().unwrap_or_default())))
        });
        Ok(events.take(count).try_collect().await?)
    };
    let first = take(&start, 4).await?;
    let short: Vec<_> = first.iter().map(|e| format!("{} {}", e.0, e.1)).collect();
    equal(short, vec!["added w-0".into(), "added w-1".into(), "added w-2".into(), "deleted w-1".to_string()])?;
    equal(take(&first[1].2, 2).await?, first[2..].to_vec())
}

async fn informer(client: Client, namespace: String, config: watcher::Config) -> Outcome {
    let api: Api<ConfigMap> = Api::namespaced(client, &namespace);
    api.create(&PostParams::default(), &config_map("before", &[])).await?;
    let (reader, writer) = store();
    let mut stream = Box::pin(reflector(writer, watcher(api.clone(), config)).default_backoff().applied_objects());
    let task = tokio::spawn(async move { while let Some(Ok(_)) = stream.next().await {} });
    reader.wait_until_ready().await?;
    equal(reader.find(|o| o.name_any() == "before").is_some(), true)?;
    api.create(&PostParams::default(), &config_map("after", &[])).await?;
    api.patch("after", &PatchParams::default(), &Patch::Merge(json!({"data": {"x": "y"}}))).await?;
    until(|| reader.find(|o| o.name_any() == "after" && o.data.is_some()).is_some()).await?;
    api.delete("after", &DeleteParams::default()).await?;
    until(|| reader.find(|o| o.name_any() == "after").is_none()).await?;
    task.abort();
    Ok(())
}

async fn until(condition: impl Fn() -> bool) -> Outcome {
    for _ in 0..3000 {
        if condition() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Err("never".into())
}

async fn list_watch_informer(client: Client, namespace: String) -> Outcome {
    informer(client, namespace, watcher::Config::default()).await
}

async fn streaming_informer(client: Client, namespace: String) -> Outcome {
    informer(client, namespace, watcher::Config::default().streaming_lists()).await
}

async fn install(client: &Client) -> Outcome {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    definitions.patch("crates.clients.example.com", &PatchParams::apply("checks").force(), &Patch::Apply(Crate::crd())).await?;
    await_condition(definitions, "crates.clients.example.com", conditions::is_crd_established()).await?;
    Ok(())
}

async fn custom_resources(client: Client, namespace: String) -> Outcome {
    install(&client).await?;
    let api: Api<Crate> = Api::namespaced(client, &namespace);
    let made = api.create(&PostParams::default(), &Crate::new("x", CrateSpec { replicas: 2, color: Some(Color::Red) })).await?;
    equal((made.spec.replicas, made.spec.color), (2, Some(Color::Red)))?;
    refused(api.create(&PostParams::default(), &Crate::new("y", CrateSpec { replicas: 11, color: None })).await, 422, "Invalid", "should be less than or equal to 10")?;
    refused(api.patch("x", &PatchParams::default(), &Patch::Merge(json!({"spec": {"color": "Blue"}}))).await, 422, "Invalid", "Unsupported value")?;
    let status = api.patch_status("x", &PatchParams::default(), &Patch::Merge(json!({"status": {"replicas": 2}}))).await?;
    equal(status.status.map(|s| s.replicas), Some(2))?;
    equal(api.get_scale("x").await?.status.map(|s| s.replicas), Some(2))?;
    let applied = Patch::Apply(json!({"apiVersion": "clients.example.com/v1", "kind": "Crate", "metadata": {"name": "x"}, "spec": {"replicas": 3}}));
    equal(api.patch("x", &PatchParams::apply("m").force(), &applied).await?.spec.replicas, 3)?;
    let defaulted = Patch::Apply(json!({"apiVersion": "clients.example.com/v1", "kind": "Crate", "metadata": {"name": "z"}, "spec": {}}));
    equal(api.patch("z", &PatchParams::apply("m"), &defaulted).await?.spec.replicas, 1)?;
    equal(api.list(&ListParams::default()).await?.items.len(), 2)
}

async fn controller(client: Client, namespace: String) -> Outcome {
    install(&client).await?;
    let api: Api<Crate> = Api::namespaced(client.clone(), &namespace);
    let owned: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
    let seen = Arc::new(Mutex::new(vec![]));
    let reconcile = |object: Arc<Crate>, context: Arc<(Client, Arc<Mutex<Vec<String>>>)>| async move {
        let maps: Api<ConfigMap> = Api::namespaced(context.0.clone(), &object.namespace().unwrap_or_default());
        let mut child = config_map(&object.name_any(), &[("replicas", &object.spec.replicas.to_string())]);
        child.metadata.owner_references = kube::Resource::controller_owner_ref(object.as_ref(), &()).map(|o| vec![o]);
        maps.patch(&object.name_any(), &PatchParams::apply("controller").force(), &Patch::Apply(&child)).await?;
        context.1.lock().map(|mut s| s.push(object.name_any())).ok();
        Ok::<Action, kube::Error>(Action::await_change())
    };
    let running = Controller::new(api.clone(), watcher::Config::default()).owns(owned.clone(), watcher::Config::default()).run(
        reconcile, |_, _, _| Action::requeue(Duration::from_millis(50)), Arc::new((client, seen.clone())));
    let task = tokio::spawn(running.for_each(|_| async {}));
    api.create(&PostParams::default(), &Crate::new("c", CrateSpec { replicas: 4, color: None })).await?;
    let has = |want: &'static str| move |o: Option<&ConfigMap>| o.and_then(|o| o.data.as_ref()).is_some_and(|d| d["replicas"] == want);
    await_condition(owned.clone(), "c", has("4")).await?;
    api.patch("c", &PatchParams::default(), &Patch::Merge(json!({"spec": {"replicas": 6}}))).await?;
    await_condition(owned.clone(), "c", has("6")).await?;
    owned.delete("c", &DeleteParams::default()).await?; // made again, because the controller owns it
    await_condition(owned, "c", has("6")).await?;
    task.abort();
    Ok(())
}

async fn dynamic_and_discovery(client: Client, namespace: String) -> Outcome {
    let discovery = Discovery::new(client.clone()).run_aggregated().await?;
    let (resource, capabilities) = discovery.resolve_gvk(&GroupVersionKind::gvk("apps", "v1", "Deployment")).ok_or("no apps/v1 Deployment")?;
    equal((resource.plural.as_str(), capabilities.supports_operation("watch")), ("deployments", true))?;
    let plain = Discovery::new(client.clone()).run().await?;
    equal(plain.has_group("batch") && plain.has_group("apiextensions.k8s.io"), true)?;
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), &namespace, &ApiResource::erase::<k8s_openapi::api::core::v1::Service>(&()));
    let made = api.patch("s", &PatchParams::apply("m"), &Patch::Apply(json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}))).await?;
    equal(made.data["spec"]["type"].as_str(), Some("ClusterIP"))?;
    equal(api.list(&ListParams::default()).await?.items.len(), 1)?;
    equal(client.apiserver_version().await?.major, "1".to_string())
}

async fn subresources(client: Client, namespace: String) -> Outcome {
    let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
    equal(pods.get("one").await?.status.and_then(|s| s.phase), Some("Running".into()))?;
    let with_debugger = json!({"spec": {"ephemeralContainers": [{"name": "debug", "image": "i"}]}});
    let debugged = pods.patch_ephemeral_containers("one", &PatchParams::default(), &Patch::Strategic(with_debugger)).await?;
    equal(debugged.spec.and_then(|s| s.ephemeral_containers).map(|e| e.len()), Some(1))?;
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), &namespace);
    accounts.create(&PostParams::default(), &serde_json::from_value(json!({"metadata": {"name": "sa"}}))?).await?;
    let token = accounts.create_token_request("sa", &PostParams::default(), &serde_json::from_value(json!({"spec": {"audiences": ["a"]}}))?).await?;
    equal(token.status.and_then(|s| s.token).map(|t| t.split('.').count()), Some(3))?;
    let leases: Api<Lease> = Api::namespaced(client, &namespace);
    let lease = leases.create(&PostParams::default(), &serde_json::from_value(json!({"metadata": {"name": "l"}, "spec": {
        "holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "2026-01-02T03:04:05.678901Z"}}))?).await?;
    equal(leases.get("l").await?, lease)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    let client = Client::try_default().await?;
    let checks: Vec<(&str, Check)> = vec![
        ("typed-objects", |c, n| Box::pin(typed_objects(c, n))),
        ("scale-and-status", |c, n| Box::pin(scale_and_status(c, n))),
        ("patches", |c, n| Box::pin(patches(c, n))),
        ("apply", |c, n| Box::pin(apply(c, n))),
        ("paged-lists", |c, n| Box::pin(paged_lists(c, n))),
        ("watch-and-resume", |c, n| Box::pin(watch_and_resume(c, n))),
        ("informer", |c, n| Box::pin(list_watch_informer(c, n))),
        ("streaming-informer", |c, n| Box::pin(streaming_informer(c, n))),
        ("custom-resources", |c, n| Box::pin(custom_resources(c, n))),
        ("controller", |c, n| Box::pin(controller(c, n))),
        ("dynamic-and-discovery", |c, n| Box::pin(dynamic_and_discovery(c, n))),
        ("subresources", |c, n| Box::pin(subresources(c, n))),
    ];
    let namespaces: Api<Namespace> = Api::all(client.clone());
    for (name, check) in checks {
        let metadata = ObjectMeta { generate_name: Some("rust-".into()), ..Default::default() };
        let namespace = namespaces.create(&PostParams::default(), &Namespace { metadata, ..Default::default() }).await?.name_any();
        match tokio::time::timeout(Duration::from_secs(120), check(client.clone(), namespace.clone())).await {
            Ok(Ok(())) => println!("ok   {name}"),
            Ok(Err(error)) => println!("FAIL {name} {}", error.to_string().replace('\n', " ")),
            Err(_) => println!("FAIL {name} does not end"),
        }
        namespaces.delete(&namespace, &DeleteParams::default()).await?;
    }
    Ok(())
}
