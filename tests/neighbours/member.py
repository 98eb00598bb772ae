"""A member of a PostgreSQL cluster, with Patroni's class for ZooKeeper: `python member.py SERVERS ROOT NAME SECONDS`.

The cluster `batman` is below `service` in the root, and the session timeout is given in seconds. The process carries
out the orders that `orders.py` describes, except for starting PostgreSQL.
"""

import json
import logging
import pathlib
import sys

from patroni.dcs.zookeeper import ZooKeeper
from patroni.postgresql.mpp import get_mpp

sys.path.append(str(pathlib.Path(__file__).parents[1]))
from orders import serve


def member(dcs, name):
    def touch(role):
        address = f"postgres://{name}.example:5432/postgres"
        dcs.get_cluster()
        return dcs.touch_member({"conn_url": address, "state": "running", "role": role})

    def show():
        """Returns what Patroni reads of the cluster."""
        cluster = dcs.get_cluster()
        return [
            f"initialize={cluster.initialize}",
            f"leader={cluster.leader and cluster.leader.name}",
            f"members={','.join(sorted(member.name for member in cluster.members))}",
            f"config={cluster.config and json.dumps(cluster.config.data, separators=(',', ':'))}",
            f"lsn={cluster.status.last_lsn}",
            f"failover={cluster.failover and cluster.failover.leader}-{cluster.failover and cluster.failover.candidate}",
            f"sync={cluster.sync.leader}-{cluster.sync.sync_standby}",
        ]

    return {
        "initialize": lambda system: dcs.initialize(create_new=True, sysid=system),
        "acquire": dcs.attempt_to_acquire_leader,
        "touch": touch,
        "show": show,
        "config": dcs.set_config_value,
        "update": lambda lsn: dcs.update_leader(dcs.get_cluster(), int(lsn)),
        "failover": dcs.manual_failover,
        "sync": lambda leader, standby: dcs.write_sync_state(leader, [standby], 0) is not None,
        "watch": lambda seconds: dcs.watch(None, float(seconds)),
        "resign": lambda: dcs.delete_leader(dcs.get_cluster().leader),
    }


def main(servers, root, name, seconds):
    # No test reads the log.
    logging.disable()
    timeout = int(seconds)
    config = {
        "hosts": [servers],
        "namespace": f"{root}/service",
        "scope": "batman",
        "name": name,
        "ttl": timeout,
        "retry_timeout": timeout,
        "loop_wait": timeout,
    }
    dcs = ZooKeeper(config, get_mpp({}))
    serve(lambda _: member(dcs, name))


main(*sys.argv[1:])
