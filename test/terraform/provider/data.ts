import { ApiError, type Cloud } from './cloud.ts';
import { made } from './made.ts';
import { plan } from './plan.ts';
import type { Block } from './schema.ts';
import { text, type Values } from './values.ts';

type Reader = (config: Values, cloud: Cloud) => Values;

/** What a resource of the same name does not tell. */
const readers: Readonly<Record<string, Reader>> = {
  google_project({ project_id }, { project }) {
    const id = text(project_id) || project.id;
    return { id: `projects/${id}`, project_id: id, name: id, number: project.number };
  },
  google_client_config: (_, { project }) => ({ id: `projects/${project.id}`, project: project.id, region: project.region }),
  google_pubsub_topic(config, cloud) {
    const name = text(config.name);
    const id = name.startsWith('projects/') ? name : `projects/${text(config.project) || cloud.project.id}/topics/${name}`;
    if (!cloud.find('google_pubsub_topic', id)) throw new ApiError(`404: ${id} was not found`);
    return { id };
  },
  google_storage_project_service_account(_, { project }) {
    const email = `service-${project.number}@gs-project-accounts.iam.gserviceaccount.com`;
    return { id: email, email_address: email, member: `serviceAccount:${email}` };
  },
};

/** @throws ApiError where it is not there */
export function readData(type: string, block: Block, config: Values, cloud: Cloud): Values {
  const { project } = cloud;
  const located = { project: config.project ?? project.id, region: config.region ?? project.region };
  const { planned } = plan(type, block, null, { ...config, ...located });
  return { ...made(type, planned, project, readers[type]?.(config, cloud)), ...given(config) };
}

const given = (config: Values): Values => Object.fromEntries(Object.entries(config).filter(([, value]) => value !== null));
