import type { Identity } from '../../../src/emulator/oidc.ts';
import type { Cloud } from '../provider/cloud.ts';
import { isObject, objectsOf, text, type Values } from '../provider/values.ts';

/**
 * Calls what a Cloud Scheduler job calls, once, as it would.
 *
 * @param name the job's name, not its full one
 * @throws Error that names the job where there is none, or where it calls nothing by HTTP
 */
export async function fireJob(cloud: Cloud, identity: Identity, name: string): Promise<{ readonly status: number; readonly text: string }> {
  const job = cloud.all('google_cloud_scheduler_job').find(({ values }) => values.name === name)?.values;
  const [target] = objectsOf(job?.http_target);
  if (!target) throw new Error(`there is no job ${name} that calls by HTTP`);
  const response = await fetch(text(target.uri), {
    method: text(target.http_method) || 'POST',
    headers: {
      ...(isObject(target.headers) ? (target.headers as Record<string, string>) : {}),
      ...(await authorization(target, identity)),
    },
    body: target.body ? Buffer.from(text(target.body), 'base64') : null,
  });
  return { status: response.status, text: await response.text() };
}

async function authorization(target: Values, identity: Identity): Promise<Record<string, string>> {
  const [oidc] = objectsOf(target.oidc_token);
  if (!oidc) return {};
  const claims = { audience: text(oidc.audience) || text(target.uri), email: text(oidc.service_account_email) };
  return { authorization: `Bearer ${await identity.token(claims)}` };
}
