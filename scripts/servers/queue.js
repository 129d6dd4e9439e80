// The local queue: fauxqs, which speaks the SQS protocol to the real AWS client. It forgets on restart.
import { CreateQueueCommand, DeleteQueueCommand, GetQueueAttributesCommand, SQSClient } from '@aws-sdk/client-sqs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { RUNTIME } from '../lib/folders.js';
import { startServer } from './server.js';

const SERVER = fileURLToPath(new URL('./queue-server.js', import.meta.url));

/** A local queue asks for no credentials, but the AWS client wants some; without a region it would refuse to start. */
export const LOCAL_AWS = { AWS_REGION: 'us-east-1', AWS_ACCESS_KEY_ID: 'local', AWS_SECRET_ACCESS_KEY: 'local' };

/** How often a message is received before it goes to the dead-letter queue. */
const MAX_RECEIVES = 5;

/**
 * Starts fauxqs.
 * @param {{ folder: string, pickPort?: () => Promise<number> }} options
 * @returns a server (see server.js) with `env`: the endpoint and what the AWS client wants
 */
export async function startQueue({ folder, pickPort }) {
  const marker = join(folder, 'queue');
  const server = await startServer({
    name: 'fauxqs',
    folder,
    pickPort,
    marker,
    command: (port) => ({ command: RUNTIME, args: [SERVER, marker, String(port)] }),
    ready: /^ready$/m,
    stopSignal: 'SIGTERM',
  });
  return Object.assign(server, { env: { SQS_ENDPOINT: `http://127.0.0.1:${server.port}`, ...LOCAL_AWS } });
}

/**
 * Creates a queue and its dead-letter queue.
 * @param {object} options
 * @param {Record<string, string>} options.env SQS_ENDPOINT (AWS' own if missing) and the AWS_ variables
 * @param {string} options.name
 * @param {number} [options.visibilitySeconds]
 * @returns {Promise<{ queueUrl: string, dlqUrl: string }>}
 */
export async function createQueues({ env, name, visibilitySeconds = 30 }) {
  return await withClient(env, async (client) => {
    const create = async (queue, attributes) =>
      (await client.send(new CreateQueueCommand({ QueueName: queue, Attributes: attributes }))).QueueUrl;
    const dlqUrl = await create(`${name}-dead`);
    const { Attributes } = await client.send(
      new GetQueueAttributesCommand({ QueueUrl: dlqUrl, AttributeNames: ['QueueArn'] }),
    );
    const redrive = { deadLetterTargetArn: Attributes.QueueArn, maxReceiveCount: MAX_RECEIVES };
    const queueUrl = await create(name, {
      VisibilityTimeout: String(visibilitySeconds),
      RedrivePolicy: JSON.stringify(redrive),
    });
    // fauxqs answers with a name below localhost, which not every machine's resolver knows; only the path matters to it.
    const here = (url) => (env.SQS_ENDPOINT ? new URL(new URL(url).pathname, env.SQS_ENDPOINT).href : url);
    return { queueUrl: here(queueUrl), dlqUrl: here(dlqUrl) };
  });
}

/** Deletes queues, with what is in them. */
export async function deleteQueues({ env, urls }) {
  await withClient(env, async (client) => {
    for (const url of urls) await client.send(new DeleteQueueCommand({ QueueUrl: url }));
  });
}

async function withClient(env, work) {
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = env;
  const client = new SQSClient({
    region: env.AWS_REGION,
    ...(env.SQS_ENDPOINT ? { endpoint: env.SQS_ENDPOINT } : {}),
    ...(accessKeyId ? { credentials: { accessKeyId, secretAccessKey } } : {}),
  });
  try {
    return await work(client);
  } finally {
    client.destroy();
  }
}
