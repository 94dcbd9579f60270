package report_test

import (
	"strings"
	"testing"

	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
)

const head = `"apiVersion":"preflight.openshift.io/v1alpha1","kind":"PreflightReport"`

func TestRead(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		stored string
		err    string
	}{
		"UnknownFields": {
			reason: "a newer tool adds fields", stored: `{` + head +
				`,"verdict":{"decision":"Ready","mood":"good"},"expected":{"checks":1,"reported":1},"weather":{}}`,
		},
		"YAML": {reason: "YAML is accepted", stored: "apiVersion: preflight.openshift.io/v1alpha1\nkind: PreflightReport\nverdict:\n  " +
			"decision: Undecided\n"},
		"Empty": {reason: "an interrupted redirection leaves an empty file", err: `this is not a report: its kind is "", not "PreflightReport"`},
		"Text": {
			reason: "the text output cannot be read", stored: "Ready: this cluster can be updated to 4.19.0.\n\nTarget     4.19.0\n",
			err: "this is not a report: it is neither JSON nor YAML",
		},
		"String": {reason: "a YAML string", stored: "hello", err: "this is not a report: it has no apiVersion and kind"},
		"Cut": {
			reason: "a truncated file", stored: `{` + head + `,"verdict":{"decision":"Rea`,
			err: "this is not a report: it is neither JSON nor YAML",
		},
		"Other": {
			reason: "a document of another kind", stored: `{"kind":"PreflightTargets"}`,
			err: `this is not a report: its kind is "PreflightTargets", not "PreflightReport"`,
		},
		"Version": {
			reason: "fields of another version may have another meaning",
			stored: `{"apiVersion":"preflight.openshift.io/v9","kind":"PreflightReport"}`,
			err:    `this report has another version: its apiVersion is "preflight.openshift.io/v9", and this tool reads "preflight.openshift.io/v1alpha1"`,
		},
		"Types": {
			reason: "a field of another type", stored: `{` + head + `,"findings":7}`,
			err: "this is not a report: json: cannot unmarshal",
		},
		"NoDecision": {reason: "no decision is not Ready", stored: `{` + head + `}`, err: `this report has no verdict: its decision is ""`},
		"Forged": {
			reason: "the decision was edited", stored: `{` + head +
				`,"run":{"phase":"Complete"},"verdict":{"decision":"Ready"},"expected":{"checks":1,"reported":1},"findings":[{"name":"Etcd.Space","source":"job","outcome":"Fail","blocks":true}]}`,
			err: "the report contradicts itself: its decision is Ready, but its findings make it Blocked",
		},
		"Unreported": {
			reason: "a check has not reported", stored: `{` + head + `,"verdict":{"decision":"Ready"},"expected":{"checks":2,"reported":1}}`,
			err: "its decision is Ready, but its findings make it Undecided",
		},
		"Pessimistic": {
			reason: "a complete run decides", stored: `{` + head +
				`,"run":{"phase":"Complete"},"verdict":{"decision":"Undecided"},"expected":{"checks":1,"reported":1}}`,
			err: "its decision is Undecided, but its findings make it Ready",
		},
		"Interrupted": {
			reason: "the built-in checks had not reported",
			stored: `{` + head + `,"run":{"phase":"Interrupted"},"verdict":{"decision":"Undecided"},"expected":{"checks":1,"reported":1}}`,
		},
		"AcceptedByList": {
			reason: "an accepted name without a bypass of its finding", stored: `{` + head +
				`,"verdict":{"decision":"Ready","accepted":["Etcd.Space"]},"expected":{"checks":1,"reported":1},"findings":[{"name":"Etcd.Space","source":"job","outcome":"Fail","blocks":true}]}`,
			err: "its decision is Ready, but its findings make it Blocked",
		},
		"Large": {reason: "the size is bounded", stored: strings.Repeat(" ", 64<<20+1), err: "this is not a report: it is larger than 64 MiB"},
		"Bomb": {
			reason: "aliases expand a small file to a large one", stored: bomb(),
			err: "this is not a report",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := report.Read(strings.NewReader(tc.stored))
			switch {
			case tc.err == "" && err != nil:
				t.Errorf("%s: %v", tc.reason, err)
			case tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)):
				t.Errorf("%s: error %v, want %q", tc.reason, err, tc.err)
			}
		})
	}
}

// bomb is a YAML document of aliases that expand to billions of strings.
func bomb() string {
	text := "a0: &a0 [" + strings.TrimSuffix(strings.Repeat("x, ", 9), ", ") + "]\n"
	for i := 1; i < 12; i++ {
		name, last := string(rune('a'+i)), string(rune('a'+i-1))
		if i == 1 {
			last = "a0"
		}
		text += name + ": &" + name + " [" + strings.TrimSuffix(strings.Repeat("*"+last+", ", 9), ", ") + "]\n"
	}
	return text
}

// In reports of earlier versions, force bypassed what blocks, and a forced verdict was Ready.
func TestForcedByAnEarlierVersion(t *testing.T) {
	failed := `{"name":"Etcd.Space","source":"job","outcome":"Fail","blocks":true,"bypass":{"by":"Force","detail":"force"}}`
	for name, tc := range map[string]struct {
		reason, findings, expected string
		want                       verdict.Decision
	}{
		"Blocking": {reason: "force bypassed a failure", findings: failed, expected: `{"checks":1,"reported":1}`, want: verdict.Blocked},
		"Inconclusive": {
			reason: "force bypassed what was inconclusive", findings: strings.Replace(failed, "Fail", "Unknown", 1),
			expected: `{"checks":1,"reported":1}`, want: verdict.Undecided,
		},
		"Missing": {
			reason: "force bypassed a check that had not reported", expected: `{"checks":2,"reported":1,"missing":["Etcd.Space"]}`,
			want: verdict.Undecided,
		},
		"Needless": {reason: "nothing was bypassed", expected: `{"checks":1,"reported":1}`, want: verdict.Ready},
		"Acknowledged": {
			reason: "another bypass stays", findings: strings.Replace(failed, `"Force"`, `"AdminAck"`, 1),
			expected: `{"checks":1,"reported":1}`, want: verdict.Ready,
		},
	} {
		t.Run(name, func(t *testing.T) {
			body := `"run":{"phase":"Complete"},"verdict":{"decision":"Ready","forced":true,"forceReason":"an outage","validUntil":"2026-11-21T09:00:00Z"},"expected":` + tc.expected + `,"findings":[` + tc.findings + `]`
			got, err := report.Read(strings.NewReader(`{` + head + `,` + body + `}`))
			if err != nil || got.Verdict.Decision != tc.want || !got.Verdict.Forced || got.Verdict.ForceReason != "an outage" ||
				got.Verdict.ValidUntil == "" || got.Permits() {
				t.Errorf("%s: %+v, error %v; want %s, forced", tc.reason, got.Verdict, err, tc.want)
			}
			path := `{"apiVersion":"preflight.openshift.io/v1alpha1","kind":"PreflightPath","versions":["4.18.3","4.18.9"],"decision":"Ready","forced":true,"updates":[{` + head + `,` + body + `}]}`
			document, err := report.Load(strings.NewReader(path))
			if err != nil {
				t.Fatal(err)
			}
			if made, err := document.Path(); err != nil || made.Decision != tc.want {
				t.Errorf("%s: the path is %s, error %v; want %s", tc.reason, made.Decision, err, tc.want)
			}
		})
	}
}
