"""Runs a command, sends it a signal once it has printed a line, and prints the line and the command's status.

usage: end_by_signal.py SIGNAL together|alone COMMAND...

The status is as Python has it: -15 if SIGTERM ended the command. With `alone` the command is process 1 of a new PID
namespace; if there can be none, "no namespace" is printed.
"""
import ctypes
import signal
import subprocess
import sys

CLONE_NEWUSER, CLONE_NEWPID = 0x10000000, 0x20000000

name, alone, command = sys.argv[1], sys.argv[2] == "alone", sys.argv[3:]
libc = ctypes.CDLL(None)
if alone and libc.unshare(CLONE_NEWPID) != 0 and libc.unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0:
    print("no namespace")
    sys.exit()
child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
print(child.stdout.readline().decode().strip())
child.send_signal(getattr(signal, name))
child.wait()
print(child.returncode)
