import { calendar } from '../src/shared/adapters/calendar.ts';
import { oidcVerifier } from '../src/shared/adapters/oidc.ts';
import { otelMeter } from '../src/shared/adapters/otel.ts';
import { system } from '../src/shared/adapters/system.ts';
import { createLateness } from '../src/shared/delay/lateness-counts.ts';
import { createRelease } from '../src/shared/delay/release.ts';
import { textOf } from '../src/shared/errors.ts';
import { connectBase } from '../src/shell/clients.ts';
import { openDedupStore } from '../src/shell/dedup-store.ts';
import { connectDelay } from '../src/shell/delay-parts.ts';
import { createApp } from './app.ts';

try {
  const base = connectBase('appengine', process.env);
  const { RELEASE_URL, RELEASE_ACCOUNT } = base.settings;
  const [parts, { store }] = await Promise.all([connectDelay(base.settings, process.env), openDedupStore(base.settings, base.log)]);
  const meter = otelMeter();
  const lateness = createLateness({ ...base, store: parts.lateness, system });
  const onPublished = lateness.add;
  const release = createRelease({ ...base, ...parts, store, calendar, system, meter, onPublished });
  const emulator = process.env.CLOUD_TASKS_EMULATOR_HOST;
  const certsUrl = emulator && `http://${emulator}/oauth2/v3/certs`;
  const verify = RELEASE_URL ? oidcVerifier({ audience: RELEASE_URL, account: RELEASE_ACCOUNT, certsUrl }) : undefined;
  const warmUp = () => Promise.all([parts.warmUp(), base.pubsub.getClientAsync_({ client: 'PublisherClient' })]);
  const app = createApp({ ...base, release, queues: parts.queues, verify, warmUp, meter });
  const server = app.listen(Number(process.env.PORT ?? 8080), () => base.log.info({ port: process.env.PORT ?? '8080' }, 'listening'));
  process.once('SIGTERM', () => {
    app.drain();
    // At once, as the requests in hand may outlast the instance; and again for what they add.
    void lateness.close();
    server.close(() => void lateness.close().finally(() => process.exit(0)));
  });
} catch (error) {
  console.error(`appengine does not start: ${textOf(error)}`);
  process.exit(1);
}
