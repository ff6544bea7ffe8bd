import { beforeAll, describe } from 'vitest';
import type { Target } from '../support/targets.ts';
import { asking, prepare, type Refused, refuses, type Taken, takes } from './bad-input.ts';
import { embeddedTasks } from './tasks-targets.ts';
import { wireService } from './wire-client.ts';

const { address } = await embeddedTasks();
const target: Target = { name: 'embedded', address };
const { client, methods } = wireService('tasks', address);
const ask = asking(client, methods);

const location = 'projects/ptk-test/locations/europe-west1';
const [queue, missing, deleted] = ['busy', 'missing', 'deleted'].map((id) => `${location}/queues/${id}`);
const [live, gone, never] = ['live', 'gone', 'never'].map((id) => `${queue}/tasks/${id}`);
const url = 'http://127.0.0.1:1/';
/** The instant 720 h ahead of the emulator's clock. */
const furthest = 1_769_817_600;
const later = { scheduleTime: { seconds: furthest } };
const seconds = (count: number, nanos = 0) => ({ seconds: count, nanos });

const created = (name: string | undefined, config: object = {}) => ({
  method: 'CreateQueue',
  request: { parent: location, queue: { name, ...config } },
});
const task = (more: object, parent = queue) => ({ method: 'CreateTask', request: { parent, task: { ...later, ...more } } });
const http = (request: object, more: object = {}) => task({ httpRequest: { url, ...request }, ...more });
const appEngine = (request: object, more: object = {}) => task({ appEngineHttpRequest: request, ...more });
const named = (method: string, name: string | undefined) => ({ method, request: { name } });
const longUrl = (characters: number) => url.padEnd(characters, 'a');
let serial = 0;
const configured = (config: object) => created(`${location}/queues/made-${serial++}`, config);
const rate = (rateLimits: object) => configured({ rateLimits });
const retry = (retryConfig: object) => configured({ retryConfig });

const refused: Refused[] = [
  { what: 'a queue that exists', ...created(queue), code: 'ALREADY_EXISTS', says: [`${queue}`] },
  { what: 'a queue of a name deleted of late', ...created(deleted), code: 'FAILED_PRECONDITION', says: [`${deleted}`] },
  {
    what: 'a task for a queue deleted of late',
    ...task({ httpRequest: { url } }, deleted),
    code: 'FAILED_PRECONDITION',
    says: [`${deleted}`],
  },
  { what: 'a task for a missing queue', ...task({ httpRequest: { url } }, missing), code: 'NOT_FOUND', says: [`${missing}`] },
  ...['GetQueue', 'DeleteQueue', 'PurgeQueue', 'PauseQueue', 'ResumeQueue'].map((method) => {
    return { what: `${method} of a missing queue`, ...named(method, missing), code: 'NOT_FOUND', says: [`${missing}`] };
  }),
  { what: 'a queue id of 101 characters', ...created(`${location}/queues/${'q'.repeat(101)}`), says: ['queue name', 'qqq', '100'] },
  { what: 'a queue id with an underscore', ...created(`${location}/queues/a_b`), says: ['queues/a_b"', '[A-Za-z0-9-]'] },
  {
    what: 'a queue of another location',
    ...created('projects/ptk-test/locations/us-east1/queues/a'),
    says: ['us-east1/queues/a', location],
  },
  { what: 'a task id of 501 characters', ...http({}, { name: `${queue}/tasks/${'t'.repeat(501)}` }), says: ['task name', '500'] },
  { what: 'a task id with a dot', ...http({}, { name: `${queue}/tasks/a.b` }), says: ['tasks/a.b"', '[A-Za-z0-9_-]'] },
  { what: 'a task of another queue', ...http({}, { name: `${missing}/tasks/a` }), says: [`${queue}`, `${missing}/tasks/a`] },
  { what: 'the name of a live task', ...http({}, { name: live }), code: 'ALREADY_EXISTS', says: [`${live}`] },
  { what: 'the name of a task that is gone', ...http({}, { name: gone }), code: 'ALREADY_EXISTS', says: [`${gone}`] },
  { what: 'GetTask of one that is gone', ...named('GetTask', gone), code: 'FAILED_PRECONDITION', says: [`${gone}`] },
  ...['DeleteTask', 'RunTask'].map((method) => ({
    what: `${method} of one that is gone`,
    ...named(method, gone),
    code: 'NOT_FOUND',
    says: [`${gone}`],
  })),
  ...['GetTask', 'DeleteTask', 'RunTask'].map((method) => ({
    what: `${method} of one that never was`,
    ...named(method, never),
    code: 'NOT_FOUND',
    says: [`${never}`],
  })),
  {
    what: 'a schedule more than 720 h ahead',
    ...http({}, { scheduleTime: seconds(furthest, 1_000_000) }),
    says: ['scheduleTime', '2026-01-31T00:00:00.001Z', '720h'],
  },
  { what: 'a schedule time that is none', ...http({}, { scheduleTime: seconds(1, 1_000_000_000) }), says: ['schedule_time', '1000000000'] },
  {
    what: 'an HTTP deadline of 14.999 s',
    ...http({}, { dispatchDeadline: seconds(14, 999_000_000) }),
    says: ['dispatchDeadline', '14.999s', '15s', '1800s'],
  },
  {
    what: 'an HTTP deadline of 1,800.001 s',
    ...http({}, { dispatchDeadline: seconds(1_800, 1_000_000) }),
    says: ['dispatchDeadline', '1800.001s', '1800s'],
  },
  {
    what: 'an App Engine deadline of 14.999 s',
    ...appEngine({}, { dispatchDeadline: seconds(14, 999_000_000) }),
    says: ['dispatchDeadline', '14.999s', '15s', '86415s'],
  },
  {
    what: 'an App Engine deadline of 24 h 15.001 s',
    ...appEngine({}, { dispatchDeadline: seconds(86_415, 1_000_000) }),
    says: ['dispatchDeadline', '86415.001s', '86415s'],
  },
  {
    what: 'an App Engine task of 102,401 bytes',
    ...appEngine({ body: Buffer.alloc(102_400) }),
    says: ['Task size', '102401 bytes', '102400'],
  },
  { what: 'an HTTP task of 1,048,577 bytes', ...http({ body: Buffer.alloc(1_048_558) }), says: ['Task size', '1048577 bytes', '1048576'] },
  { what: 'headers of 81,920 bytes', ...http({ headers: { 'x-a': 'a'.repeat(81_917) } }), says: ['headers', '81920 bytes', '81920'] },
  { what: 'a header with a line break', ...http({ headers: { 'x-a': 'a\nb' } }), says: ['headers', 'x-a: a'] },
  { what: 'a URL of 2,084 characters', ...http({ url: longUrl(2_084) }), says: ['HttpRequest.url', '2084', '2083'] },
  { what: 'an access token for nobody', ...http({ oauthToken: { scope: 'a' } }), says: ['HttpRequest.oauth_token.service_account_email'] },
  { what: 'a URL of another scheme', ...http({ url: 'ftp://127.0.0.1/' }), says: ['HttpRequest.url', '"ftp://127.0.0.1/"'] },
  { what: 'a relative URI without a slash', ...appEngine({ relativeUri: 'a' }), says: ['relativeUri', '"a"'] },
  { what: 'GET with a body', ...http({ httpMethod: 'GET', body: Buffer.from('a') }), says: ['body', 'GET', 'POST, PUT, PATCH'] },
  {
    what: 'PATCH with a body to App Engine',
    ...appEngine({ httpMethod: 'PATCH', body: Buffer.from('a') }),
    says: ['body', 'PATCH', 'POST, PUT'],
  },
  { what: 'an unknown HTTP method', ...http({ httpMethod: 99 }), says: ['HTTP method', '99'] },
  { what: 'a task without a request', ...task({}), says: ['app_engine_http_request', 'http_request'] },
  {
    what: '501 dispatches a second',
    ...rate({ maxDispatchesPerSecond: 501 }),
    says: ['rate_limits.max_dispatches_per_second', '501', '500'],
  },
  {
    what: '5,001 dispatches at once',
    ...rate({ maxConcurrentDispatches: 5_001 }),
    says: ['rate_limits.max_concurrent_dispatches', '5001', '5000'],
  },
  { what: '-2 attempts', ...retry({ maxAttempts: -2 }), says: ['retry_config.max_attempts', '-2', '-1'] },
  {
    what: 'a least backoff above the most',
    ...retry({ minBackoff: seconds(2), maxBackoff: seconds(1) }),
    says: ['retry_config.min_backoff', '2000', '1000'],
  },
  {
    what: 'a negative retry duration',
    ...retry({ maxRetryDuration: seconds(-1) }),
    says: ['retry_config.max_retry_duration', '-1000', '0'],
  },
  {
    what: 'an unknown mask path',
    method: 'UpdateQueue',
    request: { queue: { name: queue }, updateMask: { paths: ['rate_limits.colour'] } },
    says: ['update_mask', '"rate_limits.colour"'],
  },
  { what: 'a negative page size', method: 'ListTasks', request: { parent: queue, pageSize: -1 }, says: ['page_size', '-1'] },
  { what: 'a page token of no page', method: 'ListTasks', request: { parent: queue, pageToken: 'x!' }, says: ['page_token', '"x!"'] },
  { what: 'a call with a deadline 31 s ahead', ...named('GetQueue', queue), deadlineMs: 31_000, says: ['deadline', '30000 ms'] },
];

const taken: Taken[] = [
  { what: 'a queue id of 100 characters', ...created(`${location}/queues/${'q'.repeat(100)}`) },
  { what: 'a task id of 500 characters', ...http({}, { name: `${queue}/tasks/${'t'.repeat(500)}` }) },
  { what: 'a schedule 720 h ahead', ...http({}) },
  { what: 'a schedule in the past', ...task({ httpRequest: { url }, scheduleTime: seconds(0) }) },
  ...[15, 1_800].map((each) => ({ what: `an HTTP deadline of ${each} s`, ...http({}, { dispatchDeadline: seconds(each) }) })),
  ...[15, 86_415].map((each) => ({ what: `an App Engine deadline of ${each} s`, ...appEngine({}, { dispatchDeadline: seconds(each) }) })),
  { what: 'an App Engine task of 102,400 bytes', ...appEngine({ body: Buffer.alloc(102_399) }) },
  { what: 'an HTTP task of 1,048,576 bytes', ...http({ body: Buffer.alloc(1_048_557) }) },
  { what: 'headers of 81,919 bytes', ...http({ headers: { 'x-a': 'a'.repeat(81_916) } }) },
  { what: 'a URL of 2,083 characters', ...http({ url: longUrl(2_083) }) },
  { what: '500 dispatches a second, 5,000 at once', ...rate({ maxDispatchesPerSecond: 500, maxConcurrentDispatches: 5_000 }) },
  { what: 'attempts without a limit', ...retry({ maxAttempts: -1 }) },
  { what: 'a call with a deadline 29 s ahead', ...named('GetQueue', queue), deadlineMs: 29_000 },
];

describe('Cloud Tasks bad input', () => {
  beforeAll(async () => {
    await prepare(ask, [
      created(queue),
      created(deleted),
      named('DeleteQueue', deleted),
      http({}, { name: live }),
      http({}, { name: gone }),
      named('DeleteTask', gone),
    ]);
  });
  refuses(target, ask, refused);
  takes(target, ask, taken);
});
