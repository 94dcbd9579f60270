package jobs_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"

	"github.com/openshift/update-preflight/collector/finding"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/jobs/diagnosis"
)

func TestUntrustedResultIsSanitized(t *testing.T) {
	long := strings.Repeat("é", 40<<10)
	objects := make([]preflight.Object, 60)
	objects[0] = preflight.Object{APIVersion: "v1", Kind: "Pod\n", Namespace: "a\x1b[2J", Name: "b"}
	facts := map[string]string{"key\x00": "value\x07"}
	for _, letter := range "abcdefghijklmnopqrstuvwxyz" {
		facts[string(letter)], facts[string(letter)+string(letter)] = "x", "y"
	}
	hostile := preflight.Finding{
		Name: "Quorum", Outcome: preflight.Pass, Reason: "not one word",
		Message: "\x1b[31mred\x1b[0m \x1b]0;title\x07and\u202e reversed\r\nsecond line", Remediation: long, URL: "javascript:alert(1)",
		Objects: objects, Evidence: facts,
	}
	got := diagnosis.Classify(observe(framed, pod(ended(0, frame(t, preflight.StateFinal, hostile))))).Findings[0]

	want := finding.Finding{Finding: hostile, Source: finding.SourceJob, Job: got.Job}
	want.Name, want.Reason, want.URL = "Etcd.Quorum", "Passed", ""
	want.Message = "red and reversed\nsecond line"
	want.Remediation, want.Objects, want.Evidence = got.Remediation, got.Objects, got.Evidence
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("finding (-want, +got):\n%s", diff)
	}
	if len(got.Remediation) > 32<<10 || !strings.HasSuffix(got.Remediation, "é…") {
		t.Errorf("a text of %d bytes is not cut at a character boundary", len(got.Remediation))
	}
	if diff := cmp.Diff(preflight.Object{APIVersion: "v1", Kind: "Pod", Namespace: "a", Name: "b"}, got.Objects[0]); diff != "" ||
		len(got.Objects) != 50 {
		t.Errorf("%d objects, the first (-want, +got):\n%s", len(got.Objects), diff)
	}
	if len(got.Evidence) != 50 || got.Evidence["key"] != "value" {
		t.Errorf("evidence is not bounded, or missing: %v", got.Evidence)
	}
}

func TestDefaultReasons(t *testing.T) {
	for outcome, tc := range map[preflight.Outcome]struct {
		code int32
		want string
	}{
		preflight.Pass: {0, "Passed"}, preflight.Warn: {0, "Warned"}, preflight.Fail: {3, "Failed"},
		preflight.Unknown: {4, "CouldNotTell"}, preflight.Skipped: {0, "NotApplicable"},
	} {
		unnamed := preflight.Finding{Name: "Quorum", Outcome: outcome}
		if got := diagnosis.Classify(observe(framed,
			pod(ended(tc.code, frame(t, preflight.StateFinal, unnamed))))).Findings[0]; got.Reason != tc.want {
			t.Errorf("%s without a reason: %q, want %q", outcome, got.Reason, tc.want)
		}
	}
}

func TestLastLogLines(t *testing.T) {
	damaged := "preflight/1 json 9 00000000 {}\n"
	log := strings.Repeat("early\n", 500) + damaged + "\x1b[1mlast\tline\x1b[0m\n\n"
	message := diagnosis.Classify(observe(framed, pod(running), logged(log), expired)).Findings[0].Message
	if lines := strings.Split(message, "\n"); len(lines) != 10 || lines[8] != "early" || lines[9] != "last line" {
		t.Errorf("want the last ten lines, sanitized, got %q", message)
	}
}

// FuzzTerminationMessage checks that every output of a container leads to findings
// with valid names and printable text, and that only exit code 0 passes.
func FuzzTerminationMessage(f *testing.F) {
	f.Add(frame(f, preflight.StateFinal, reported("Quorum", preflight.Pass)), "", int32(0), true)
	f.Add(frame(f, preflight.StateFinal, reported("Alarm", preflight.Fail)), "log", int32(3), false)
	f.Add("preflight/1 json 2 00000000 {}", "\x1b[31m", int32(1), true)
	f.Add("", frame(f, preflight.StateFinal, reported("Quorum", preflight.Warn)), int32(0), true)
	f.Add("\xff\xfe", "\x9b31m\u202e", int32(137), false)
	acceptable := regexp.MustCompile(`^[A-Z][A-Za-z0-9.-]*$`)
	camelCase := regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
	f.Fuzz(func(t *testing.T, message, log string, code int32, promised bool) {
		o := observe(pod(ended(code, message)), logged(log), failed(batchv1.JobReasonBackoffLimitExceeded), expired)
		o.Check.Framed = promised
		classified := diagnosis.Classify(o)
		if classified.State != diagnosis.Done || len(classified.Findings) == 0 {
			t.Fatalf("no findings: %+v", classified)
		}
		for _, found := range classified.Findings {
			if !acceptable.MatchString(found.Name) || !strings.HasPrefix(found.Name, "Etcd.") || !camelCase.MatchString(found.Reason) {
				t.Errorf("invalid name %q or reason %q", found.Name, found.Reason)
			}
			if found.Outcome == preflight.Pass && code != 0 && len(classified.Findings) == 1 {
				t.Errorf("exit code %d passed: %+v", code, found)
			}
			for _, text := range []string{found.Message, found.Remediation, found.URL} {
				if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && unicode.IsControl(r) }) {
					t.Errorf("not printable: %q", text)
				}
			}
		}
	})
}
