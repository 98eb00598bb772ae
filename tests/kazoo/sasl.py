"""A kazoo client that authenticates with SASL.

Arguments: servers, user, password. Prints `refused` if the servers refuse the user; otherwise the data of
`/ours`, after it has created `/theirs` for this user alone.
"""

import logging
import sys
import threading

from kazoo.client import KazooClient
from kazoo.exceptions import AuthFailedError, ConnectionLoss
from kazoo.security import make_acl

servers, user, password = sys.argv[1:]
logging.disable(logging.CRITICAL)
# Kazoo's thread ends with an exception if the servers require SASL and refuse the user.
threading.excepthook = lambda _: None
options = {"mechanism": "DIGEST-MD5", "username": user, "password": password}
client = KazooClient(servers, sasl_options=options)
# Kazoo reports the connection before it authenticates, and fails what was requested meanwhile.
client.start_async().wait(60)
try:
    client.create("/theirs", b"kazoo", acl=[make_acl("sasl", user, all=True)])
except (AuthFailedError, ConnectionLoss):
    print("refused")
else:
    print(client.get("/ours")[0].decode())
client.stop()
client.close()
