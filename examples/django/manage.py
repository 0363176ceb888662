#!/usr/bin/env python
"""A project with tasks of Django on dq. It needs a server with the module, at REDIS_URL.

pip install '../../clients/python[django]'
./manage.py dq_worker
./manage.py shell -c 'from shop.tasks import confirm; confirm.enqueue(1001)'
"""

import os
import sys

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")

if __name__ == "__main__":
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)
