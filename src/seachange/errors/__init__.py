"""Every error that a client can see, with its SQLSTATE; a module for each family, and all of them by name here.

An error carries a code, a message template with named fields and, where there is one, a hint. Three families: the
user's fault, retry (class 40), our bug (XX000).
"""

from seachange.errors.clients import *
from seachange.errors.families import *
from seachange.errors.places import *
from seachange.errors.retries import *
from seachange.errors.statements import *
from seachange.errors.surroundings import *
from seachange.errors.transactions import *
from seachange.errors.values import *
