"""A client that hosts several clients: it starts the program of its arguments for each, and passes lines on."""
import json
import subprocess
import sys
import threading

hosted = {}


def pass_on(name, lines):
    for line in lines:
        sys.stdout.write(json.dumps({**json.loads(line), "client": name}) + "\n")
        sys.stdout.flush()


for line in sys.stdin:
    request = json.loads(line)
    name = request.pop("client", "")
    if name not in hosted:
        hosted[name] = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        threading.Thread(target=pass_on, args=(name, hosted[name].stdout)).start()
    hosted[name].stdin.write(json.dumps(request) + "\n")
    hosted[name].stdin.flush()
