import { PubSub } from '@google-cloud/pubsub';
import { startEmulator } from '/work/main/src/emulator/server.ts';
import { rawPubsub } from '/work/main/test/emulator/pubsub-raw.ts';
const e = await startEmulator();
const pubsub = new PubSub({ projectId: 'ptk', apiEndpoint: e.pubsub.address, emulatorMode: true });
const [topic] = await pubsub.createTopic('orders');
const [subscription] = await topic.createSubscription('worker', { enableExactlyOnceDelivery: true });
subscription.on('message', (m) => console.log('MSG', m.ackId));
subscription.on('error', (m) => console.log('ERR', m));
subscription.on('debug', (m) => console.log('DEBUG', m));
while (e.pubsub.openStreams().length === 0) await new Promise((r) => setTimeout(r, 5));
await topic.publishMessage({ data: Buffer.from('a') });
const raw = rawPubsub({ name: 'embedded', address: e.pubsub.address }, 'x');
let last = '';
let first = true;
const t0 = performance.now();
while (performance.now() - t0 < 4000) {
  const s = JSON.stringify(e.pubsub.messages('projects/ptk/subscriptions/worker').map(({ message, ...r }) => r));
  if (s !== last) { console.log(Math.round(performance.now() - t0), s); last = s; }
  const [m] = e.pubsub.messages('projects/ptk/subscriptions/worker');
  if (first && m?.lease) { first = false; await raw.call('ModifyAckDeadline', { subscription: subscription.name, ackIds: [m.lease.ackId], ackDeadlineSeconds: 0 }); }
  await new Promise((r) => setTimeout(r, 1));
}
await pubsub.close(); raw.close(); await e.close();
