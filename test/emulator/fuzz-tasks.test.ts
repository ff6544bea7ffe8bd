import { fuzzService } from './fuzz-service.ts';
import { embeddedTasks } from './tasks-targets.ts';
import { wireService } from './wire-client.ts';

const { emulator, address } = await embeddedTasks();
const { client, methods, ask } = wireService('tasks', address);

const location = 'projects/fuzz/locations/europe-west1';
const queues = ['busy', 'paused', 'missing'].map((id) => `${location}/queues/${id}`);
const tasks = queues.flatMap((queue) => [`${queue}/tasks/a`, `${queue}/tasks/b`]);

fuzzService({
  name: 'Cloud Tasks',
  client,
  methods,
  plausible: {
    queue: [],
    task: [],
    ...Object.fromEntries(['Get', 'Delete', 'Purge', 'Pause', 'Resume'].map((verb) => [`${verb}QueueRequest.name`, queues])),
    'Queue.name': [`${location}/queues/new`, ...queues],
    'Task.name': ['', ...tasks],
    name: tasks,
    'ListQueuesRequest.parent': [location],
    'CreateQueueRequest.parent': [location],
    parent: queues,
    messageType: [],
    payloadType: [],
    resource: queues,
    paths: ['rate_limits', 'rate_limits.max_burst_size', 'retry_config.max_backoff', 'retry_config', 'state', 'name', 'rateLimits'],
    url: ['http://127.0.0.1:1/', 'http://127.0.0.1:1/a?b#c', 'http://[', 'ftp://127.0.0.1/'],
    relativeUri: ['', '/', '/a?b', '//', '/%', 'a'],
    host: ['127.0.0.1'],
    'headers.key': ['a', 'content-type', 'x-cloudtasks-queuename', 'a b', ''],
    'headers.value': ['b', 'ä', 'a\nb'],
    body: [''],
    pageToken: ['', 'YQ'],
    filter: [''],
  },
  async prepare() {
    emulator.reset();
    for (const name of queues.slice(0, 2)) {
      await ask('CreateQueue', { parent: location, queue: { name } });
      for (const id of ['a', 'b']) {
        await ask('CreateTask', { parent: name, task: { name: `${name}/tasks/${id}`, httpRequest: { url: 'http://127.0.0.1:1/' } } });
      }
    }
    await ask('PauseQueue', { name: queues[1] });
  },
  live: () => ask('ListQueues', { parent: location }),
});
