// A consumer of Apache's Dubbo SDK for Node that carries out orders: `node consumer.js SERVERS ROOT`.
//
// The SDK's registry is the node `dubbo` below the root. The protocol on the pipes is that of `orders.py`. The verb
// `make INTERFACE VERSION` creates a consumer, and waits until it has read the providers.

'use strict';

const readline = require('readline');
const { setting, zk } = require('apache-dubbo-js');

const [servers, root] = process.argv.slice(2);

function consumer(name, version) {
  return new Promise((resolve, reject) => {
    let hosts = [];
    const open = zk({ url: servers, zkRoot: `${root}/dubbo`.slice(1) });
    const registry = open({
      application: { name: 'shop' },
      interfaces: [name],
      dubboSetting: setting.match(name, { version }),
    });
    const verbs = {
      hosts: () => hosts,
      // The providers of a version, as the SDK looks them up for each call.
      version: wanted =>
        Object.keys(registry.getAgentAddrMap({ dubboInterface: name, version: wanted, group: '' })).sort(),
    };
    registry.subscribe({
      onData: found => {
        hosts = [...found].sort();
        resolve(verbs);
      },
      onError: reject,
    });
  });
}

const things = {};

async function answer(name, verb, words) {
  try {
    if (verb === 'make') {
      things[name] = await consumer(...words);
      return 'ok';
    }
    return ['ok', ...things[name][verb](...words)].join(' ');
  } catch (error) {
    return `error ${String(error).replace(/\n/g, ' ')}`;
  }
}

console.log('ready');
const lines = readline.createInterface({ input: process.stdin });
lines.on('line', async line => {
  const [number, name, verb, ...words] = line.split(' ');
  console.log(`${number} ${await answer(name, verb, words)}`);
});
lines.on('close', () => process.exit(0));
