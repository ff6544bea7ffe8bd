import { invalidArgument } from '../grpc.ts';
import { type Seconds, toMs } from './instant.ts';
import { quoted } from './names.ts';
import type { RetryPolicy } from './retry.ts';
import type { Rate } from './token-bucket.ts';

export type Routing = { readonly service: string; readonly version: string; readonly instance: string; readonly host?: string };
type RateLimits = { readonly maxDispatchesPerSecond: number; readonly maxConcurrentDispatches: number; readonly maxBurstSize: number };
type RetryConfig = {
  readonly maxAttempts: number;
  readonly maxRetryDuration: Seconds;
  readonly minBackoff: Seconds;
  readonly maxBackoff: Seconds;
  readonly maxDoublings: number;
};

/** The part of google.cloud.tasks.v2.Queue that a client sets, as it comes. */
export type QueueRequest = {
  readonly name: string;
  readonly appEngineRoutingOverride: Routing | null;
  readonly rateLimits: Omit<RateLimits, 'maxBurstSize'> | null;
  readonly retryConfig: { readonly [Field in keyof RetryConfig]: RetryConfig[Field] | null } | null;
  readonly stackdriverLoggingConfig: { readonly samplingRatio: number } | null;
};

/** The same with every default filled in and every range checked. */
export type QueueSettings = {
  readonly appEngineRoutingOverride: Routing | null;
  readonly rateLimits: RateLimits;
  readonly retryConfig: RetryConfig;
  readonly stackdriverLoggingConfig: { readonly samplingRatio: number } | null;
};

const maskable: Readonly<Record<string, readonly string[]>> = {
  app_engine_routing_override: ['service', 'version', 'instance'],
  rate_limits: ['max_dispatches_per_second', 'max_concurrent_dispatches'],
  retry_config: ['max_attempts', 'max_retry_duration', 'min_backoff', 'max_backoff', 'max_doublings'],
  stackdriver_logging_config: ['sampling_ratio'],
};

/** Fills in what is not set; proto3 cannot tell an unset number from 0, so 0 takes the default too. */
export function resolveSettings(request: QueueRequest): QueueSettings {
  const { rateLimits, retryConfig, stackdriverLoggingConfig } = request;
  const perSecond = rateLimits?.maxDispatchesPerSecond || 500;
  const settings: QueueSettings = {
    appEngineRoutingOverride: request.appEngineRoutingOverride,
    rateLimits: {
      maxDispatchesPerSecond: perSecond,
      // The service picks the burst and documents only 100 for 500 per second; in proportion, a slow queue has none.
      maxBurstSize: Math.max(Math.ceil(perSecond / 5), 1),
      maxConcurrentDispatches: rateLimits?.maxConcurrentDispatches || 1000,
    },
    retryConfig: {
      maxAttempts: retryConfig?.maxAttempts || 100,
      maxRetryDuration: retryConfig?.maxRetryDuration ?? { seconds: '0', nanos: 0 },
      minBackoff: retryConfig?.minBackoff ?? { seconds: '0', nanos: 100_000_000 },
      maxBackoff: retryConfig?.maxBackoff ?? { seconds: '3600', nanos: 0 },
      maxDoublings: retryConfig?.maxDoublings || 16,
    },
    stackdriverLoggingConfig,
  };
  checkRanges(settings);
  return settings;
}

/** Takes the masked fields from the request, all others from the queue as it is; an empty mask takes everything. */
export function maskSettings(current: QueueSettings, request: QueueRequest, paths: readonly string[]): QueueSettings {
  if (paths.length === 0) return resolveSettings(request);
  const merged: Record<string, unknown> = { ...current };
  for (const path of paths) {
    const [group = '', leaf, ...deeper] = path.split('.');
    const leaves = Object.hasOwn(maskable, group) ? maskable[group] : undefined;
    if (!leaves || deeper.length > 0 || (leaf !== undefined && !leaves.includes(leaf))) {
      throw invalidArgument(`update_mask holds ${quoted(path)}, which is no field of a queue that can be set`);
    }
    const field = camelCase(group) as keyof QueueSettings;
    const value = request[field] as Record<string, unknown> | null;
    if (leaf === undefined) merged[field] = value;
    else merged[field] = { ...(merged[field] as object | null), [camelCase(leaf)]: value?.[camelCase(leaf)] ?? null };
  }
  return resolveSettings({ ...merged, name: request.name } as QueueRequest);
}

export function retryPolicyOf({ retryConfig }: QueueSettings): RetryPolicy {
  return {
    maxAttempts: retryConfig.maxAttempts,
    maxRetryMs: toMs('max_retry_duration', retryConfig.maxRetryDuration),
    minBackoffMs: toMs('min_backoff', retryConfig.minBackoff),
    maxBackoffMs: toMs('max_backoff', retryConfig.maxBackoff),
    maxDoublings: retryConfig.maxDoublings,
  };
}

export function rateOf({ rateLimits }: QueueSettings): Rate {
  return { perSecond: rateLimits.maxDispatchesPerSecond, burst: rateLimits.maxBurstSize };
}

function checkRanges(settings: QueueSettings): void {
  const { rateLimits, retryConfig, stackdriverLoggingConfig } = settings;
  const policy = retryPolicyOf(settings);
  const within = (field: string, value: number, min: number, max: number) => {
    if (!(value >= min && value <= max)) throw invalidArgument(`${field} must lie between ${min} and ${max}: ${value}`);
  };
  within('rate_limits.max_dispatches_per_second', rateLimits.maxDispatchesPerSecond, 0, 500);
  within('rate_limits.max_concurrent_dispatches', rateLimits.maxConcurrentDispatches, 1, 5000);
  within('retry_config.max_attempts', retryConfig.maxAttempts, -1, Number.POSITIVE_INFINITY);
  within('retry_config.max_doublings', retryConfig.maxDoublings, 0, Number.POSITIVE_INFINITY);
  within('retry_config.max_retry_duration in ms', policy.maxRetryMs, 0, Number.POSITIVE_INFINITY);
  within('retry_config.min_backoff in ms', policy.minBackoffMs, 0, policy.maxBackoffMs);
  within('stackdriver_logging_config.sampling_ratio', stackdriverLoggingConfig?.samplingRatio ?? 0, 0, 1);
}

const camelCase = (snake: string) => snake.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
