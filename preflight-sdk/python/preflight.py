"""A /bin/preflight in Python: one file, standard library only, Python 3.7 or later.

    import preflight

    def no_legacy_config(t):
        if os.path.exists("/etc/example/legacy.conf"):
            t.fail("/etc/example/legacy.conf exists")
            t.remedy("Move its settings.")
            t.command("oc edit example cluster")

    preflight.main(preflight.Check("NoLegacyConfig", no_legacy_config))

A check is a function that reports through t. Reporting nothing is a pass. An
exception means that the check was inconclusive, which never counts as a pass. The
most severe outcome that it reported counts: Fail, Unknown, Warn, Skipped, Pass.

The checks run one after another, each in a thread that is abandoned when its time
is up: pass t.remaining() to requests as the timeout. No files are created. With
the argument --help the program prints its usage and runs no check.

../WIRE.md specifies the output. To inspect it, or to test another implementation:

    preflight.py encode [BYTES] <document.json    # prints the frame
    preflight.py decode <termination-message      # prints the document
"""

import base64
import collections
import datetime
import json
import os
import queue
import re
import signal
import sys
import threading
import time
import traceback
import zlib

EXIT_PASS, EXIT_USAGE, EXIT_FAIL, EXIT_UNKNOWN = 0, 2, 3, 4

# The outcomes, by severity.
SEVERITY = {"Pass": 0, "Skipped": 1, "Warn": 2, "Unknown": 3, "Fail": 4}
REASONS = {"Pass": "Passed", "Skipped": "NotApplicable", "Warn": "CheckWarned", "Fail": "CheckFailed", "Unknown": "Inconclusive"}

MAX_DOCUMENT = 1 << 20
MAX_LINE = 8 << 10
MAX_PARTS = 512
MAX_COMMAND, MAX_COMMANDS = 4096, 20
DEFAULT_BUDGET, MIN_BUDGET = 4096, 512
TERMINATION_LOG = "/dev/termination-log"

USAGE = """usage: %s [--help]

Reports whether the cluster can be updated safely. Read-only.
Without --help it runs these checks:

%s

Exit codes: 0 no check failed or was inconclusive, 2 invalid usage, 3 a check
failed, 4 a check was inconclusive.

In a Job of "oc preflight run" the runner sets PREFLIGHT_CURRENT_VERSION,
PREFLIGHT_TARGET_VERSION, PREFLIGHT_TARGET_IMAGE, PREFLIGHT_RUN_ID,
PREFLIGHT_DEADLINE and PREFLIGHT_RESULT_BYTES."""

Update = collections.namedtuple("Update", "run_id from_version to_version image")


class Check:
    """One question about the cluster. advisory turns a Fail into a Warn; timeout is
    in seconds, None means until the deadline of the run."""

    def __init__(self, name, run, description="", url="", timeout=None, advisory=False):
        self.name, self.run, self.description = name, run, description
        self.url, self.timeout, self.advisory = url, timeout, advisory


class T:
    """The interface through which a check reports. Reports after its time is up are
    ignored."""

    def __init__(self, check, update, ends):
        self.update = update
        self._check, self._ends = check, ends
        self._statements, self._remedies, self._commands = [], [], []
        self._objects, self._evidence = [], {}
        self._reason = self._step = ""

    def fail(self, message):
        """Reports that the update would do harm. Name the object."""
        self._statements.append(("Warn" if self._check.advisory else "Fail", message))

    def warn(self, message):
        """Reports what an administrator should know; it does not prevent the update."""
        self._statements.append(("Warn", message))

    def skip(self, message):
        """Reports that the check does not apply to this cluster, and why."""
        self._statements.append(("Skipped", message))

    def unknown(self, message):
        """Reports that the check is inconclusive, and why. So does an exception."""
        self._statements.append(("Unknown", message))

    def remedy(self, text):
        """Adds a line to the remediation: a sentence."""
        if text not in self._remedies:
            self._remedies.append(text)

    def command(self, text):
        """Adds a command of the remedy, at most 4096 bytes. Reports show it in full."""
        text = text.strip()
        if len(text.encode("utf-8", "replace")) > MAX_COMMAND:
            self.log("command of more than %d bytes: ignored" % MAX_COMMAND)
        elif text and text not in self._commands and len(self._commands) < MAX_COMMANDS:
            self._commands.append(text)

    def reason(self, word):
        """Sets the reason: one CamelCase word, stable across releases."""
        if not camel_case(word):
            raise ValueError("reason %r is not a CamelCase word" % word)
        self._reason = word

    def object(self, api_version, kind, name, namespace=""):
        """Adds an affected object. Add the most important one first."""
        about = {"apiVersion": api_version, "kind": kind, "name": name}
        if namespace:
            about["namespace"] = namespace
        self._objects.append(about)

    def evidence(self, key, value):
        """Adds a short fact that supports the finding. It must not contain secrets."""
        self._evidence[key] = str(value)

    def log(self, text):
        """Writes a line to the log. The last line is the last step of a timeout."""
        self._step = text
        print("%s: %s" % (self._check.name, text), file=sys.stderr, flush=True)

    def remaining(self):
        """Returns the seconds until the check must end, for the timeouts of requests;
        None if it has no deadline."""
        return None if self._ends is None else max(0.1, self._ends - time.monotonic())

    def finding(self, reason="", error="", stack=""):
        """Returns the finding, with the error that made the check inconclusive."""
        statements = list(self._statements)
        if error:
            step = " (last step: %s)" % self._step if self._step and reason != "CheckError" else ""
            statements.append(("Unknown", error + step))
        statements.sort(key=lambda s: -SEVERITY[s[0]])
        outcome = statements[0][0] if statements else "Pass"
        evidence = dict(self._evidence, stack=stack) if stack else dict(self._evidence)
        if outcome != "Unknown" or not reason:
            reason = self._reason
        entry = {"name": self._check.name, "outcome": outcome, "reason": reason or REASONS[outcome],
                 "message": "; ".join(text for _, text in statements) or self._check.description,
                 "url": self._check.url, "objects": list(self._objects), "evidence": evidence}
        if SEVERITY[outcome] > SEVERITY["Skipped"]:
            entry["remediation"] = "\n".join(self._remedies)
            entry["actions"] = [{"command": command} for command in self._commands]
        return {key: value for key, value in entry.items() if value}


def main(*checks):
    """Runs the checks, reports their findings and ends the process."""
    # Characters that the locale cannot encode must not raise an exception.
    sys.stdout.reconfigure(errors="backslashreplace")
    if {"-h", "--help"}.intersection(sys.argv[1:]):
        print(USAGE % (os.path.basename(sys.argv[0]), "\n".join("  " + check.name for check in checks)))
        sys.exit(EXIT_PASS)
    code = Program(os.environ).run(checks)
    sys.stdout.flush()
    sys.stderr.flush()
    # The thread of an abandoned check must not delay the exit.
    os._exit(code)


class Program:
    """One execution of a check program."""

    def __init__(self, environ):
        self.environ = environ
        self.log = environ.get("PREFLIGHT_TERMINATION_LOG", TERMINATION_LOG)
        self.budget, self.run_id, self.ends = DEFAULT_BUDGET, "", None
        self.events = queue.SimpleQueue()
        self.interrupted = False

    def run(self, checks):
        try:
            self.read_environment()
            validate_checks(checks)
        except ValueError as err:
            print("preflight: %s" % err, file=sys.stderr)
            self.report("final", [{"name": "Preflight", "outcome": "Unknown", "reason": "InvalidCheck",
                                   "message": "no check was run: %s" % err,
                                   "remediation": "Fix the program or its Job manifest."}])
            return EXIT_USAGE

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self.events.put(("Interrupted", None, "")))
        findings = [{"name": c.name, "outcome": "Unknown", "reason": "NotFinished",
                     "message": c.name + " had not started when the process ended"} for c in checks]
        for i, check in enumerate(checks):
            findings[i]["message"] = check.name + " was running when the process ended"
            self.report("running", findings)
            findings[i] = self.run_check(check)
            print("%(name)s: %(outcome)s: " % findings[i] + findings[i].get("message", ""), flush=True)
        self.report("final", findings)
        return exit_code(findings)

    def read_environment(self):
        get = self.environ.get
        run_id = get("PREFLIGHT_RUN_ID", "")
        validate_run_id(run_id)
        self.run_id = run_id
        budget = get("PREFLIGHT_RESULT_BYTES", "") or str(DEFAULT_BUDGET)
        if not re.fullmatch("[0-9]{3,9}", budget) or int(budget) < MIN_BUDGET:
            raise ValueError("PREFLIGHT_RESULT_BYTES %r: want a number of at least %d" % (budget, MIN_BUDGET))
        self.budget = min(int(budget), DEFAULT_BUDGET)
        deadline = get("PREFLIGHT_DEADLINE", "")
        if deadline:
            left = seconds_until(deadline)
            self.ends = time.monotonic() + left - min(5, max(0, left / 10))

    def run_check(self, check):
        """Runs one check in a thread that is abandoned when its time is up."""
        now = time.monotonic()
        ends = [end for end in (self.ends, check.timeout and now + check.timeout) if end is not None]
        t = T(check, Update(self.run_id, self.environ.get("PREFLIGHT_CURRENT_VERSION", ""),
                            self.environ.get("PREFLIGHT_TARGET_VERSION", ""),
                            self.environ.get("PREFLIGHT_TARGET_IMAGE", "")), min(ends) if ends else None)
        if self.interrupted:
            return t.finding("Interrupted", check.name + " was not started before the process was interrupted")
        if ends and min(ends) <= now:
            return t.finding("Timeout", check.name + " was not started before the deadline of the run")

        threading.Thread(target=self.call, args=(check, t), daemon=True).start()
        while True:
            left = t.remaining()
            try:
                # CPython handles a signal that arrives just before a wait when the wait ends, so no wait is long.
                kind, source, text = self.events.get(timeout=1 if left is None else min(left, 1))
            except queue.Empty:
                if left is not None and left <= 1:
                    return t.finding("Timeout", check.name + " did not finish in time")
                continue
            if kind == "Interrupted":
                self.interrupted = True
                return t.finding("Interrupted", check.name + " was interrupted")
            # An abandoned check may end later.
            if source is check:
                return t.finding("CheckError" if text else "", text, kind)

    def call(self, check, t):
        stack = error = ""
        try:
            check.run(t)
        # SystemExit is not a pass either.
        except BaseException as err:
            error = "%s: %s" % (type(err).__name__, err)
            stack = "".join(traceback.format_tb(err.__traceback__)[-3:])
        self.events.put((stack, check, error))

    def report(self, state, findings):
        """Writes the result to the termination log. A final result that does not fit
        there, or cannot be written there, also goes to standard output in full."""
        document = {"state": state, "findings": findings}
        if self.run_id:
            document["runID"] = self.run_id
        line, truncated = fit(document, self.budget)
        try:
            overwrite(self.log, line)
        except FileNotFoundError:
            truncated = bool(self.run_id)
        except OSError as err:
            truncated = True
            print("preflight: cannot write the termination message: %s" % err, file=sys.stderr)
        if truncated and state == "final":
            # A part may end within a multi-byte character.
            sys.stdout.flush()
            sys.stdout.buffer.write(b"\n" + log_lines(document))
            sys.stdout.flush()


def overwrite(path, line):
    """Overwrites the file, which is never created and never empty in between."""
    file = os.open(path, os.O_WRONLY)
    try:
        os.write(file, line)
        if os.fstat(file).st_size > len(line):
            os.ftruncate(file, len(line))
    finally:
        os.close(file)


def seconds_until(deadline):
    match = re.fullmatch(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?Z", deadline)
    if not match:
        raise ValueError("PREFLIGHT_DEADLINE %r: want a time like 2026-01-31T10:00:00Z" % deadline)
    at = datetime.datetime.strptime(match.group(1) + "+0000", "%Y-%m-%dT%H:%M:%S%z")
    return at.timestamp() + float(match.group(2) or 0) - time.time()


def camel_case(word):
    return re.fullmatch("[A-Z][A-Za-z0-9]{0,62}", word) is not None


def validate_checks(checks):
    if not checks:
        raise ValueError("no checks: call preflight.main with at least one")
    names = [check.name for check in checks]
    for name in names:
        if not camel_case(name):
            raise ValueError("check name %r is not CamelCase of at most 63 letters and digits" % name)
        if names.count(name) > 1:
            raise ValueError("duplicate check name %r" % name)


def worst(findings):
    return max((f["outcome"] if f["outcome"] in SEVERITY else "Unknown" for f in findings), key=SEVERITY.get)


def exit_code(findings):
    return {"Fail": EXIT_FAIL, "Unknown": EXIT_UNKNOWN}.get(worst(findings), EXIT_PASS)


# The wire format: writing.


def frame(encoding, payload):
    return b"preflight/1 %s %d %08x %s\n" % (encoding, len(payload), zlib.crc32(payload), payload)


def encode(document, budget):
    """Returns the frame: plain if that fits, otherwise compressed, otherwise None."""
    payload = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    if len(payload) > MAX_DOCUMENT:
        return None
    line = frame(b"json", payload)
    if len(line) > budget:
        compress = zlib.compressobj(9, zlib.DEFLATED, -15)
        packed = compress.compress(payload) + compress.flush()
        line = frame(b"flate", base64.urlsafe_b64encode(packed).rstrip(b"="))
    return line if len(line) <= budget else None


def fit(document, budget):
    """Returns the frame with as much as the budget allows, and whether anything was
    removed. No step changes an outcome."""
    validate(document)
    line = encode(document, budget)
    if line:
        return line, False
    for shorten in (without_evidence_of_passes, without_evidence, cut_at(512), cut_at(256), cut_at(128), cut_at(64),
                    names_only, summary):
        document = dict(document, truncated=True, findings=shorten(document["findings"]))
        line = encode(document, budget)
        if line:
            return line, True
    raise ValueError("a result of %d findings does not fit into %d bytes" % (len(document["findings"]), budget))


def without(finding, *keys):
    return {key: value for key, value in finding.items() if key not in keys}


def without_evidence_of_passes(findings):
    return [without(f, "evidence") if f["outcome"] in ("Pass", "Skipped") else f for f in findings]


def without_evidence(findings):
    return [without(f, "evidence", "objects") for f in findings]


def cut_at(limit):
    def cut(text):
        raw = text.encode("utf-8", "replace")
        return text if len(raw) <= limit else raw[:limit - 3].decode("utf-8", "ignore") + "…"

    def size(text):
        return len(text.encode("utf-8", "replace"))

    def shorten(findings):
        short = [dict(f, **{key: cut(f[key]) for key in ("message", "remediation") if key in f}) for f in findings]
        short = [dict(f, actions=[a for a in f["actions"] if size(a["command"]) <= limit]) if "actions" in f else f for f in short]
        return [without(f, "url") if size(f.get("url", "")) > limit else f for f in short]
    return shorten


def names_only(findings):
    return [{"name": f["name"], "outcome": f["outcome"], "reason": f.get("reason", "")} for f in findings]


def summary(findings):
    count = collections.Counter(f["outcome"] for f in findings)
    counts = ", ".join("%d %s" % (count[o], o) for o in ("Fail", "Unknown", "Warn", "Skipped", "Pass"))
    return [{"name": "Preflight", "outcome": worst(findings), "reason": "ResultTooLong",
             "message": "%d checks: %s; their names are in the log" % (len(findings), counts)}]


def log_lines(document):
    """Returns the frame for a log, in parts if it is long."""
    line, _ = fit(document, 2 * MAX_DOCUMENT)
    if len(line) <= MAX_LINE:
        return line
    text = line.rstrip(b"\n")
    parts = [text[i:i + MAX_LINE] for i in range(0, len(text), MAX_LINE)]
    return b"".join(frame(b"part", b"%d/%d %s" % (i + 1, len(parts), part)) for i, part in enumerate(parts))


# The wire format: reading.


class FrameError(ValueError):
    """There is no valid result. kind is NoFrame, Damaged, Version, Encoding, Document
    or TooLong."""

    def __init__(self, kind, message):
        super().__init__(message)
        self.kind = kind


def parse(data):
    """Returns the document of the last complete frame in a termination message or log."""
    scanner = Scanner()
    for line in data.split(b"\n"):
        scanner.line(line)
    if scanner.last is None:
        raise scanner.error
    return decode(*scanner.last)


class Scanner:
    """Reads lines and keeps the last complete frame."""

    HEAD = re.compile(rb"preflight/([0-9]{1,9}) ([a-z0-9-]{1,16}) ([0-9]{1,7}) ([0-9a-f]{8}) ")

    def __init__(self):
        self.last, self.parts = None, []
        self.error = FrameError("NoFrame", "no complete preflight frame")

    def line(self, line):
        head = self.HEAD.match(line)
        if not head:
            return
        if head.group(1) != b"1":
            self.error = FrameError("Version", "frame has wire version %s: only version 1 is supported" % head.group(1).decode())
            return
        payload = line[head.end():head.end() + int(head.group(3))]
        if len(payload) < int(head.group(3)):
            return
        if b"%08x" % zlib.crc32(payload) != head.group(4):
            self.error = FrameError("Damaged", "damaged frame: wrong checksum")
            return
        if head.group(2) != b"part":
            self.last = head.group(2), payload
            return
        whole = self.join(payload)
        if whole and not whole.startswith(b"preflight/1 part "):
            self.line(whole)

    def join(self, payload):
        match = re.match(rb"([0-9]{1,9})/([0-9]{1,9}) ", payload)
        if not match:
            return None
        number, count = int(match.group(1)), int(match.group(2))
        if number == 1:
            self.parts = []
        if number != len(self.parts) + 1 or number > count or count > MAX_PARTS:
            self.parts = []
            return None
        self.parts.append(payload[match.end():])
        if number < count:
            return None
        whole, self.parts = b"".join(self.parts), []
        return whole


def decode(encoding, payload):
    if encoding == b"flate":
        payload = inflate(payload)
    elif encoding != b"json":
        raise FrameError("Encoding", "frame has unknown encoding %s" % encoding.decode())
    if len(payload) > MAX_DOCUMENT:
        raise FrameError("TooLong", "frame has more than %d bytes of JSON" % MAX_DOCUMENT)
    try:
        document = json.loads(payload.decode("utf-8", "replace"))
        validate(document)
    except (ValueError, RecursionError) as err:
        raise FrameError("Document", "frame has no valid result: %s" % err)
    return supported(document)


def inflate(payload):
    if not re.fullmatch(rb"[A-Za-z0-9_-]*", payload):
        raise FrameError("Damaged", "damaged frame: not base64url")
    stream = zlib.decompressobj(-15)
    try:
        plain = stream.decompress(base64.urlsafe_b64decode(payload + b"=" * (-len(payload) % 4)), MAX_DOCUMENT + 1)
    except (ValueError, zlib.error) as err:
        raise FrameError("Damaged", "damaged frame: %s" % err)
    if not stream.eof and len(plain) <= MAX_DOCUMENT:
        raise FrameError("Damaged", "damaged frame: incomplete stream")
    return plain


TEXTS = ("name", "outcome", "reason", "message", "remediation", "url")
OBJECT = ("apiVersion", "kind", "namespace", "name")


def field(of, key, kind):
    """Returns the value of a field, or the zero value if the field is absent."""
    value = of.get(key)
    if value is None:
        return kind()
    if not isinstance(value, kind):
        raise ValueError("%s is not of type %s" % (key, kind.__name__))
    return value


def validate(document):
    """Raises ValueError unless the document is valid in the wire format."""
    if not isinstance(document, dict):
        raise ValueError("the document is not an object")
    if field(document, "state", str) not in ("running", "final"):
        raise ValueError("state %r: want running or final" % (document.get("state"),))
    validate_run_id(field(document, "runID", str))
    field(document, "truncated", bool)
    names = set()
    for finding in field(document, "findings", list):
        validate_finding(finding)
        if finding["name"] in names:
            raise ValueError("duplicate finding %r" % finding["name"])
        names.add(finding["name"])
    if not names:
        raise ValueError("the result has no findings")


def validate_run_id(run_id):
    if not re.fullmatch("[A-Za-z0-9._-]{0,64}", run_id):
        raise ValueError("run ID %.64r: want at most 64 letters, digits, dots, dashes and underscores" % run_id)


def validate_finding(finding):
    if not isinstance(finding, dict):
        raise ValueError("a finding is not an object")
    for key in TEXTS:
        field(finding, key, str)
    name = field(finding, "name", str)
    if not re.fullmatch("[A-Z][A-Za-z0-9.-]{0,127}", name):
        raise ValueError("name %.128r: want at most 128 bytes that match ^[A-Z][A-Za-z0-9.-]*$" % name)
    if len(field(finding, "reason", str).encode("utf-8", "replace")) > 128:
        raise ValueError("the reason has more than 128 bytes")
    for action in field(finding, "actions", list):
        if not isinstance(action, dict):
            raise ValueError("an entry of actions is not an object")
        field(action, "command", str)
    for about in field(finding, "objects", list):
        if not isinstance(about, dict):
            raise ValueError("an entry of objects is not an object")
        for key in OBJECT:
            field(about, key, str)
    for key in field(finding, "evidence", dict):
        field(finding["evidence"], key, str)


def supported(document):
    """Returns the document without what this version does not support."""
    out = {"state": document["state"]}
    for key in ("runID", "truncated"):
        if document.get(key):
            out[key] = document[key]
    out["findings"] = []
    for finding in document["findings"]:
        finding = {key: finding[key] for key in TEXTS + ("actions", "objects", "evidence") if finding.get(key)}
        if "actions" in finding:
            finding["actions"] = [{"command": action.get("command") or ""} for action in finding["actions"]]
        if "objects" in finding:
            finding["objects"] = [{key: o[key] for key in OBJECT if o.get(key)} for o in finding["objects"]]
        outcome = finding.get("outcome", "")
        if outcome not in SEVERITY:
            finding["message"] = "outcome %s is not supported by this version; %s" % (
                json.dumps(outcome, ensure_ascii=False), finding.get("message", ""))
            finding["outcome"] = "Unknown"
        out["findings"].append(finding)
    return out


def command(args):
    data = sys.stdin.buffer.read()
    if args[:1] == ["encode"] and len(args) <= 2:
        line, _ = fit(json.loads(data.decode()), int(args[1]) if len(args) > 1 else DEFAULT_BUDGET)
        sys.stdout.buffer.write(line)
        return EXIT_PASS
    if args == ["decode"]:
        try:
            print(json.dumps(parse(data), indent=2))
        except FrameError as err:
            print("%s: %s" % (err.kind, err), file=sys.stderr)
            return 1
        return EXIT_PASS
    print(__doc__, file=sys.stderr)
    return EXIT_USAGE


if __name__ == "__main__":
    sys.exit(command(sys.argv[1:]))
