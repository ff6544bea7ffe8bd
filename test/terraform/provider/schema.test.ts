import { describe, expect, test } from 'vitest';
import { googleSchema, readSchema } from './schema.ts';

const attributeOf = (type: string, name: string) => googleSchema.resources.get(type)?.attributes.get(name);

describe('the schema of hashicorp/google', () => {
  test('says what must, may and cannot be set', () => {
    expect(attributeOf('google_pubsub_topic', 'name')).toMatchObject({ type: 'string', required: true, optional: false, computed: false });
    expect(attributeOf('google_pubsub_topic', 'labels')).toMatchObject({ type: ['map', 'string'], optional: true, computed: false });
    expect(attributeOf('google_service_account', 'email')).toMatchObject({ required: false, optional: false, computed: true });
    expect(attributeOf('google_redis_instance', 'auth_string')?.sensitive).toBe(true);
  });

  test('counts blocks', () => {
    const { blocks } = googleSchema.resources.get('google_cloud_scheduler_job') ?? { blocks: new Map() };
    expect(blocks.get('http_target')).toMatchObject({ nesting: 'list', min: 0, max: 1 });
    expect(googleSchema.resources.get('google_app_engine_standard_app_version')?.blocks.get('deployment')).toMatchObject({
      min: 1,
      max: 1,
    });
  });

  test('is that of version 7', () => {
    const trigger = googleSchema.resources.get('google_cloudfunctions2_function')?.blocks.get('event_trigger')?.block;
    expect(trigger?.attributes.get('event_type')?.required).toBe(true);
    expect(attributeOf('google_memorystore_instance', 'allow_fewer_zones_deployment')).toBeUndefined();
  });

  test.each(['string', 'text required', 'list(list) optional'])('refuses an attribute that is written "%s"', (written) => {
    expect(() => readSchema({ provider: {}, data: {}, resources: { type: { a: written } } })).toThrow(`type.a is written "${written}"`);
  });

  test('refuses a block that is written in another way', () => {
    const resources = { type: { a: { block: 'list 1', of: {} } } };
    expect(() => readSchema({ provider: {}, data: {}, resources })).toThrow('type.a is written "list 1"');
  });
});
