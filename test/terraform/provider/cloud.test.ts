import { describe, expect, test } from 'vitest';
import { ApiError, createCloud } from './cloud.ts';

const project = { id: 'p', number: '12', region: 'europe-west1' };
const cloudWith = (...existing: Parameters<typeof createCloud>[1] & {}) => createCloud(() => project, existing);
const topic = { id: 'projects/p/topics/t', name: 't' };

describe('a project', () => {
  test('has nothing twice', () => {
    const cloud = cloudWith();
    cloud.create('google_pubsub_topic', topic);
    expect(() => cloud.create('google_pubsub_topic', topic)).toThrow(new ApiError('409: projects/p/topics/t already exists'));
  });

  test.each(['google_project_iam_member', 'google_project_service', 'google_firestore_field'])('takes %s as often as it comes', (type) => {
    const cloud = cloudWith();
    cloud.create(type, { id: 'a' });
    expect(() => cloud.create(type, { id: 'a' })).not.toThrow();
  });

  test('makes nothing of what is not there', () => {
    const cloud = cloudWith();
    const subscription = { id: 'projects/p/subscriptions/s', topic: topic.id };
    expect(() => cloud.create('google_pubsub_subscription', subscription)).toThrow(
      '404: google_pubsub_topic projects/p/topics/t was not found',
    );
    cloud.create('google_pubsub_topic', topic);
    cloud.create('google_pubsub_subscription', subscription);
    const deadLetters = {
      id: 'projects/p/subscriptions/u',
      topic: topic.id,
      dead_letter_policy: [{ dead_letter_topic: 'projects/p/topics/dead' }],
    };
    expect(() => cloud.create('google_pubsub_subscription', deadLetters)).toThrow(
      '404: google_pubsub_topic projects/p/topics/dead was not found',
    );
    expect(cloud.all()).toHaveLength(2);
  });

  test('has a version of App Engine replaced by one of the same id, whoever made that, and an application never', () => {
    const version = { id: 'apps/p/services/default/versions/live', noop_on_destroy: true };
    const cloud = cloudWith({ type: 'google_app_engine_application', values: { id: 'p', project: 'p' } });
    cloud.create('google_app_engine_standard_app_version', version);
    cloud.remove('google_app_engine_standard_app_version', version);
    cloud.create('google_app_engine_standard_app_version', { ...version, runtime: 'nodejs24' });
    expect(cloud.find('google_app_engine_standard_app_version', version.id)).toMatchObject({ runtime: 'nodejs24' });
    expect(cloud.all('google_app_engine_standard_app_version')).toHaveLength(1);
    expect(cloud.abandoned()).toHaveLength(1);
    expect(() => cloud.create('google_app_engine_application', { id: 'p' })).toThrow('409: p already exists');
  });

  test('changes and deletes what was imported, and nothing that is not there', () => {
    const held = (name: string) => ({ type: 'google_pubsub_topic', values: { name, project: 'p' } });
    const cloud = cloudWith(held('changed'), held('deleted'));
    const changed = { id: 'projects/p/topics/changed', name: 'changed', labels: { a: '1' } };
    cloud.update('google_pubsub_topic', changed);
    expect(cloud.all()).toEqual([{ type: 'google_pubsub_topic', values: changed }]);
    expect(cloud.remove('google_pubsub_topic', { id: 'projects/p/topics/deleted' })).toBe('deleted');
    expect(cloud.abandoned()).toEqual([]);
    expect(() => cloud.update('google_pubsub_topic', { id: 'projects/p/topics/deleted' })).toThrow(
      '404: projects/p/topics/deleted was not found',
    );
  });

  test('knows what it held before by its short name too', () => {
    const cloud = cloudWith({ type: 'google_pubsub_topic', values: { name: 'old', project: 'p' } });
    expect(cloud.find('google_pubsub_topic', 'projects/p/topics/old')).toMatchObject({ name: 'old' });
    expect(() => cloud.create('google_pubsub_topic_iam_member', { id: 'g', topic: 'old' })).not.toThrow();
    expect(() => cloud.create('google_pubsub_topic', { id: 'projects/p/topics/old' })).toThrow('409');
  });
});

describe('a destroy', () => {
  test.each([
    ['google_pubsub_topic', topic, 'deleted'],
    ['google_project_service', { id: 'p/a', disable_on_destroy: true }, 'deleted'],
    ['google_project_service', { id: 'p/a', disable_on_destroy: false }, 'abandoned'],
    [
      'google_firestore_database',
      { id: 'd', deletion_policy: 'ABANDON', delete_protection_state: 'DELETE_PROTECTION_ENABLED' },
      'abandoned',
    ],
    ['google_firestore_database', { id: 'd', deletion_policy: 'DELETE', delete_protection_state: 'DELETE_PROTECTION_DISABLED' }, 'deleted'],
    ['google_app_engine_application', { id: 'p' }, 'abandoned'],
    ['google_app_engine_standard_app_version', { id: 'v', noop_on_destroy: true }, 'abandoned'],
    ['google_app_engine_standard_app_version', { id: 'v', delete_service_on_destroy: true }, 'deleted'],
  ] as const)('of %s %j leaves it %s', (type, values, becomes) => {
    const cloud = cloudWith();
    cloud.create(type, values);
    expect(cloud.remove(type, values)).toBe(becomes);
    expect(cloud.all()).toEqual([]);
    expect(cloud.abandoned()).toHaveLength(becomes === 'abandoned' ? 1 : 0);
  });

  test.each([
    [
      'google_firestore_database',
      { id: 'd', deletion_policy: 'DELETE', delete_protection_state: 'DELETE_PROTECTION_ENABLED' },
      'delete_protection_state is DELETE_PROTECTION_ENABLED',
    ],
    ['google_memorystore_instance', { id: 'm', deletion_protection_enabled: true }, 'deletion_protection_enabled is true'],
    ['google_app_engine_standard_app_version', { id: 'v' }, 'it is the last version of its service'],
  ] as const)('of %s %j is refused: %s', (type, values, reason) => {
    const cloud = cloudWith();
    cloud.create(type, values);
    expect(() => cloud.remove(type, values)).toThrow(reason);
    expect(cloud.all()).toHaveLength(1);
  });

  test('of a queue keeps its name from being used again', () => {
    const cloud = cloudWith();
    const queue = { id: 'projects/p/locations/l/queues/q' };
    cloud.create('google_cloud_tasks_queue', queue);
    cloud.remove('google_cloud_tasks_queue', queue);
    expect(() => cloud.create('google_cloud_tasks_queue', queue)).toThrow('was deleted a short while ago');
  });
});
