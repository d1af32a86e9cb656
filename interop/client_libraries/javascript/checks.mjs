// The JavaScript client (npm: @kubernetes/client-node) against a server. Prints a line for each check: ok or FAIL, its name, what was wrong.
// KUBECONFIG names the server. Pod "one" of namespace default runs on a fake kubelet (run.py).
import assert from 'node:assert/strict';
import net from 'node:net';
import { PassThrough } from 'node:stream';
import * as k8s from '@kubernetes/client-node';

const config = new k8s.KubeConfig();
config.loadFromFile(process.env.KUBECONFIG);
const core = config.makeApiClient(k8s.CoreV1Api);
const patchAs = (strategy) => k8s.setHeaderOptions('Content-Type', strategy);
const text = (stream) => {
  const chunks = [];
  stream.on('data', (chunk) => chunks.push(chunk));
  return () => Buffer.concat(chunks.map((c) => Buffer.from(c))).toString();
};

async function refused(code, part, promise) {
  try {
    await promise;
  } catch (error) {
    assert.equal(error.code, code, String(error));
    assert.ok(String(error.body).includes(part), `${part} is not in ${error.body}`);
    return;
  }
  assert.fail(`no error ${code}`);
}

async function until(what, condition) {
  for (const end = Date.now() + 60_000; Date.now() < end; await new Promise((done) => setTimeout(done, 20))) {
    if (await condition()) return;
  }
  assert.fail(`never: ${what}`);
}

const configMap = (name, data, labels) => ({ metadata: { name, labels }, data });
const deployment = (name) => ({
  metadata: { name },
  spec: {
    replicas: 2,
    selector: { matchLabels: { app: name } },
    template: { metadata: { labels: { app: name } }, spec: { containers: [{ name: 'c', image: 'example.com/i' }] } },
  },
});

const checks = {
  async 'typed-objects'(namespace) {
    const made = await core.createNamespacedConfigMap({ namespace, body: configMap('a', { k: 'v' }) });
    const read = await core.readNamespacedConfigMap({ namespace, name: 'a' });
    assert.deepEqual(read, made);
    assert.ok(made.metadata.creationTimestamp instanceof Date);
    const replaced = await core.replaceNamespacedConfigMap({ namespace, name: 'a', body: { ...made, data: { k: 'w' } } });
    assert.deepEqual(replaced.data, { k: 'w' });
    await refused(409, 'AlreadyExists', core.createNamespacedConfigMap({ namespace, body: configMap('a', {}) }));
    await refused(409, 'the object has been modified', core.replaceNamespacedConfigMap({ namespace, name: 'a', body: made }));
    await refused(422, 'Invalid value', core.createNamespacedConfigMap({ namespace, body: configMap('Not A Name', {}) }));
    assert.equal((await core.deleteNamespacedConfigMap({ namespace, name: 'a' })).status, 'Success');
    await refused(404, 'NotFound', core.readNamespacedConfigMap({ namespace, name: 'a' }));
  },

  async 'scale-and-status'(namespace) {
    const apps = config.makeApiClient(k8s.AppsV1Api);
    await apps.createNamespacedDeployment({ namespace, body: deployment('d') });
    const scale = await apps.readNamespacedDeploymentScale({ namespace, name: 'd' });
    assert.equal(scale.spec.replicas, 2);
    scale.spec.replicas = 4;
    assert.equal((await apps.replaceNamespacedDeploymentScale({ namespace, name: 'd', body: scale })).spec.replicas, 4);
    const body = { status: { replicas: 4, observedGeneration: 2 } };
    const status = await apps.patchNamespacedDeploymentStatus({ namespace, name: 'd', body }, patchAs(k8s.PatchStrategy.MergePatch));
    assert.equal(status.status.replicas, 4);
  },

  async patches(namespace) {
    await core.createNamespacedConfigMap({ namespace, body: configMap('p', { a: '1', b: '2' }) });
    const send = async (body, strategy) => (await core.patchNamespacedConfigMap({ namespace, name: 'p', body }, patchAs(strategy))).data;
    assert.deepEqual(await send({ data: { a: null, c: '3' } }, k8s.PatchStrategy.MergePatch), { b: '2', c: '3' });
    assert.deepEqual(await send([{ op: 'replace', path: '/data/b', value: '4' }], k8s.PatchStrategy.JsonPatch), { b: '4', c: '3' });
    assert.deepEqual(await send({ data: { d: '5' } }, k8s.PatchStrategy.StrategicMergePatch), { b: '4', c: '3', d: '5' });
    await refused(422, 'Invalid', send([{ op: 'remove', path: '/data/none' }], k8s.PatchStrategy.JsonPatch));
  },

  async apply(namespace) {
    const body = (data) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'ssa' }, data });
    const send = (data, fieldManager, force) =>
      core.patchNamespacedConfigMap({ namespace, name: 'ssa', body: body(data), fieldManager, force }, patchAs(k8s.PatchStrategy.ServerSideApply));
    await send({ a: '1', b: '1' }, 'one');
    await refused(409, 'conflict with', send({ a: '2' }, 'two'));
    assert.deepEqual((await send({ a: '2' }, 'two', true)).data, { a: '2', b: '1' });
    assert.deepEqual((await send({}, 'one')).data, { a: '2' });
  },

  async 'paged-lists'(namespace) {
    for (let i = 0; i < 25; i++) {
      await core.createNamespacedConfigMap({ namespace, body: configMap(`n-${10 + i}`, {}, { odd: String(i % 2) }) });
    }
    const names = [];
    let pages = 0;
    let _continue;
    do {
      const page = await core.listNamespacedConfigMap({ namespace, limit: 10, _continue, labelSelector: 'odd' });
      names.push(...page.items.map((item) => item.metadata.name));
      _continue = page.metadata._continue;
      pages++;
    } while (_continue);
    assert.deepEqual([names.length, pages, names], [25, 3, [...names].sort()]);
    assert.equal((await core.listNamespacedConfigMap({ namespace, labelSelector: 'odd=1' })).items.length, 12);
  },

  async 'watch-and-resume'(namespace) {
    const start = (await core.listNamespacedConfigMap({ namespace })).metadata.resourceVersion;
    for (let i = 0; i < 3; i++) await core.createNamespacedConfigMap({ namespace, body: configMap(`w-${i}`, {}) });
    await core.deleteNamespacedConfigMap({ namespace, name: 'w-1' });
    const take = async (resourceVersion, count) => {
      const seen = [];
      const watch = new k8s.Watch(config);
      const controller = await watch.watch(`/api/v1/namespaces/${namespace}/configmaps`, { resourceVersion, labelSelector: '!other' }, (type, object) => {
        if (object.metadata.name.startsWith('w-')) seen.push([type, object.metadata.name, object.metadata.resourceVersion]);
      }, () => {});
      await until('events', () => seen.length >= count);
      controller.abort();
      return seen.slice(0, count);
    };
    const first = await take(start, 4);
    assert.deepEqual(first.map((e) => e.slice(0, 2)), [['ADDED', 'w-0'], ['ADDED', 'w-1'], ['ADDED', 'w-2'], ['DELETED', 'w-1']]);
    assert.deepEqual(await take(first[1][2], 2), first.slice(2));
  },

  async informer(namespace) {
    await core.createNamespacedConfigMap({ namespace, body: configMap('before', {}) });
    const informer = k8s.makeInformer(config, `/api/v1/namespaces/${namespace}/configmaps`, () => core.listNamespacedConfigMap({ namespace }));
    const seen = [];
    for (const kind of ['add', 'update', 'delete']) informer.on(kind, (object) => seen.push(`${kind} ${object.metadata.name}`));
    await informer.start();
    await core.createNamespacedConfigMap({ namespace, body: configMap('after', {}) });
    await core.patchNamespacedConfigMap({ namespace, name: 'after', body: { data: { x: 'y' } } }, patchAs(k8s.PatchStrategy.MergePatch));
    await core.deleteNamespacedConfigMap({ namespace, name: 'after' });
    await until('all events', () => seen.includes('delete after'));
    await informer.stop();
    assert.deepEqual(seen.filter((e) => e.endsWith('after')), ['add after', 'update after', 'delete after']);
    assert.ok(seen.includes('add before'));
  },

  async 'object-api'(namespace) {
    const api = k8s.KubernetesObjectApi.makeApiClient(config);
    const spec = { apiVersion: 'v1', kind: 'Service', metadata: { name: 's', namespace }, spec: { ports: [{ port: 80 }] } };
    const made = await api.create(spec);
    assert.equal(made.spec.type, 'ClusterIP');
    assert.equal((await api.read(spec)).metadata.uid, made.metadata.uid);
    const patched = await api.patch({ ...spec, metadata: { name: 's', namespace, labels: { a: 'b' } } }, undefined, undefined, undefined, undefined, k8s.PatchStrategy.MergePatch);
    assert.deepEqual(patched.metadata.labels, { a: 'b' });
    assert.equal((await api.list('v1', 'Service', namespace)).items.length, 1);
    await api.delete(spec);
    await refused(404, 'NotFound', api.read(spec));
  },

  async 'custom-objects'(namespace) {
    const definitions = config.makeApiClient(k8s.ApiextensionsV1Api);
    const custom = config.makeApiClient(k8s.CustomObjectsApi);
    const name = 'scripts.clients.example.com';
    await definitions.createCustomResourceDefinition({ body: { metadata: { name }, spec: {
      group: 'clients.example.com', scope: 'Namespaced', names: { plural: 'scripts', kind: 'Script' },
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object', properties: {
        spec: { type: 'object', properties: { color: { type: 'string', _enum: ['red'] }, size: { type: 'integer', _default: 3 } } } } } } }] } } });
    await until('established', async () => (await definitions.readCustomResourceDefinition({ name })).status?.conditions?.some((c) => c.type === 'Established' && c.status === 'True'));
    const where = { group: 'clients.example.com', version: 'v1', namespace, plural: 'scripts' };
    const body = { apiVersion: 'clients.example.com/v1', kind: 'Script', metadata: { name: 'x' }, spec: { color: 'red' } };
    const made = await custom.createNamespacedCustomObject({ ...where, body });
    assert.deepEqual(made.spec, { color: 'red', size: 3 });
    await refused(422, 'Unsupported value', custom.createNamespacedCustomObject({ ...where, body: { ...body, metadata: { name: 'y' }, spec: { color: 'blue' } } }));
    const patched = await custom.patchNamespacedCustomObject({ ...where, name: 'x', body: { spec: { size: 4 } } }, patchAs(k8s.PatchStrategy.MergePatch));
    assert.equal(patched.spec.size, 4);
    assert.equal((await custom.listNamespacedCustomObject(where)).items.length, 1);
    await custom.deleteNamespacedCustomObject({ ...where, name: 'x' });
    await definitions.deleteCustomResourceDefinition({ name });
  },

  async discovery() {
    const groups = (await config.makeApiClient(k8s.ApisApi).getAPIVersions()).groups.map((g) => g.name);
    for (const group of ['apps', 'batch', 'apiextensions.k8s.io']) assert.ok(groups.includes(group), group);
    assert.ok((await core.getAPIResources()).resources.some((r) => r.name === 'pods/exec'));
    assert.equal((await config.makeApiClient(k8s.VersionApi).getCode()).major, '1');
  },

  async leases(namespace) {
    const api = config.makeApiClient(k8s.CoordinationV1Api);
    const body = { metadata: { name: 'l' }, spec: { holderIdentity: 'me', leaseDurationSeconds: 15, renewTime: new k8s.V1MicroTime(0) } };
    const made = await api.createNamespacedLease({ namespace, body });
    assert.equal(made.spec.holderIdentity, 'me');
    made.spec.holderIdentity = 'you';
    assert.equal((await api.replaceNamespacedLease({ namespace, name: 'l', body: made })).spec.holderIdentity, 'you');
  },

  async log() {
    assert.equal(await core.readNamespacedPodLog({ namespace: 'default', name: 'one', container: 'c' }), 'first\nsecond\n');
    const out = new PassThrough();
    const got = text(out);
    const done = new Promise((end) => out.on('end', end));
    await new k8s.Log(config).log('default', 'one', 'ended', out, { follow: true });
    await done;
    assert.equal(got(), 'only\n');
    await refused(400, 'container nope is not valid', core.readNamespacedPodLog({ namespace: 'default', name: 'one', container: 'nope' }));
  },

  async exec() {
    const [out, err, stdin] = [new PassThrough(), new PassThrough(), new PassThrough()];
    const [stdout, stderr] = [text(out), text(err)];
    const status = new Promise((done, failed) => {
      new k8s.Exec(config).exec('default', 'one', 'c', ['sh', '-c', 'read x; echo got $x; echo bad >&2; exit 3'], out, err, stdin, false, done).catch(failed);
    });
    stdin.write('word\n');
    const result = await status;
    assert.deepEqual([stdout(), stderr(), result.status, result.reason], ['got word\n', 'bad\n', 'Failure', 'NonZeroExitCode']);
    await assert.rejects(new k8s.Exec(config).exec('default', 'none', 'c', ['true'], out, err, null, false));
  },

  async 'port-forward'() {
    const forward = new k8s.PortForward(config);
    const server = net.createServer((socket) => forward.portForward('default', 'one', [8080], socket, null, socket));
    await new Promise((done) => server.listen(0, '127.0.0.1', done));
    const socket = net.connect(server.address().port, '127.0.0.1');
    const got = text(socket);
    socket.write('hello\n');
    await until('the echo', () => got().endsWith('hello\n'));
    assert.equal(got(), 'port 8080\nhello\n');
    socket.destroy();
    server.close();
  },
};

const only = process.argv[2] ?? '';
for (const [name, check] of Object.entries(checks)) {
  if (!name.includes(only)) continue;
  const namespace = (await core.createNamespace({ body: { metadata: { generateName: 'javascript-' } } })).metadata.name;
  try {
    await check(namespace);
    console.log(`ok   ${name}`);
  } catch (error) {
    const place = /checks\.mjs:(\d+)/.exec(error?.stack ?? '')?.[1];
    console.log(`FAIL ${name} ${String(error?.message ?? error).replace(/\s+/g, ' ').slice(0, 600)} (line ${place})`);
  }
  await core.deleteNamespace({ name: namespace });
}
process.exit(0);
