package explain_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	_ "github.com/openshift/update-preflight/cmd/oc-preflight/command" // links the packages of the program, which declare reasons
	"github.com/openshift/update-preflight/cmd/oc-preflight/explain"
	"github.com/openshift/update-preflight/collector/builtin"
	"github.com/openshift/update-preflight/collector/document/format"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/test/after"
	"github.com/openshift/update-preflight/test/golden"
)

// TestDocuments compares the JSON documents, which have a schema.
func TestDocuments(t *testing.T) {
	entries := []explain.Entry{
		{Kind: explain.KindFinding, Name: "AdminAck", Package: "collector/gate", Meaning: "The gate that an administrator opens."},
		{
			Kind: explain.KindReason, Name: "AdminAckRequired", Package: "collector/gate", Meaning: "Reported when a gate is not acknowledged.",
			Cause: "The gate is new.", Remedy: "Acknowledge it.",
		},
	}
	for file, document := range map[string]any{
		"testdata/index.json": explain.All(entries),
		"testdata/page.json":  explain.Page{APIVersion: report.APIVersion, Kind: explain.Kind, Entries: entries[1:]},
	} {
		got, err := json.MarshalIndent(document, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, '\n')
		golden.Compare(t, file, got)
	}
}

// Every reason and every name is declared once in its package, with sentences.
func TestDeclarations(t *testing.T) {
	entries := explain.Entries()
	for i, entry := range entries {
		title := fmt.Sprintf("%s %s of %s", entry.Kind, entry.Name, entry.Package)
		if entry.Subject == "" {
			t.Errorf("%s has no subject, below which it is listed", title)
		}
		if i > 0 && entries[i-1].Kind == entry.Kind && entries[i-1].Name == entry.Name && entries[i-1].Package == entry.Package {
			t.Errorf("%s is declared twice", title)
		}
		texts := []string{entry.Meaning}
		if entry.Kind == explain.KindReason {
			texts = append(texts, entry.Cause, entry.Remedy)
		}
		for _, text := range texts {
			if !finding.ValidName(entry.Name) || !strings.HasSuffix(text, ".") || strings.Join(strings.Fields(text), " ") != text {
				t.Errorf("%s: want a name, and sentences on one line, got %q", title, text)
			}
		}
		if _, err := os.Stat(filepath.Join("../../..", entry.Package)); err != nil {
			t.Errorf("%s: %v", title, err)
		}
	}
}

// The name of every check is declared.
func TestChecks(t *testing.T) {
	for _, declared := range builtin.Checks(scene.Judgement{}) {
		if page, err := explain.Find(explain.Entries(), declared.Name); err != nil || page.Entries[0].Name != declared.Name {
			t.Errorf("%s: %v", declared.Name, err)
		}
	}
}

func TestFind(t *testing.T) {
	entries := []explain.Entry{
		{Kind: explain.KindFinding, Name: "AdminAck"},
		{Kind: explain.KindReason, Name: "AdminAckRequired"},
		{Kind: explain.KindReason, Name: "Timeout", Package: "collector"},
		{Kind: explain.KindReason, Name: "Timeout", Package: "runner"},
	}
	for name, tc := range map[string]struct {
		reason, word string
		want         []explain.Entry
		similar      []string
	}{
		"Exact":   {reason: "a reason", word: "AdminAckRequired", want: entries[1:2]},
		"Case":    {reason: "typed by hand", word: "adminackrequired", want: entries[1:2]},
		"Suffix":  {reason: "findings about one gate of several", word: "AdminAck-ack-4.18-x", want: entries[:1]},
		"Several": {reason: "two packages have the reason", word: "Timeout", want: entries[2:]},
		"Similar": {reason: "only a part of the name", word: "ack", similar: []string{"AdminAck", "AdminAckRequired"}},
		"Typo":    {reason: "a letter is missing", word: "AdminAckRequird", similar: []string{"AdminAckRequired"}},
		"Swapped": {reason: "letters are swapped", word: "timeuot", similar: []string{"Timeout"}},
		"Unknown": {reason: "the check of an operator", word: "Etcd.Quorum"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := explain.Find(entries, tc.word)
			unknown, isUnknown := errors.AsType[*explain.UnknownError](err)
			if isUnknown != (tc.want == nil) {
				t.Fatalf("%s: error %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got.Entries); diff != "" {
				t.Errorf("%s: -want +got\n%s", tc.reason, diff)
			}
			if isUnknown && !slices.Equal(unknown.Similar, tc.similar) {
				t.Errorf("%s: similar %q, want %q", tc.reason, unknown.Similar, tc.similar)
			}
		})
	}
}

func TestText(t *testing.T) {
	page := explain.Page{Entries: []explain.Entry{
		{
			Kind: explain.KindReason, Name: "Timeout", Package: "collector", Subject: "All checks",
			Meaning: "Reported for a check that did not end before the deadline of the run, which includes the time that it waits for a node.",
			Cause:   "It is slow.", Remedy: "Wait.",
		},
		{Kind: explain.KindFinding, Name: "AdminAck", Package: "collector/gate", Subject: "Operators and gates", Meaning: "The gate."},
	}}
	var got bytes.Buffer
	if err := format.Write(&got, "text", page, format.Style{Width: 80, Details: true}); err != nil {
		t.Fatal(err)
	}
	const want = `Timeout (reason: All checks)

Reported for a check that did not end before the deadline of the run, which
includes the time that it waits for a node.

Cause      It is slow.
Remedy     Wait.

AdminAck (finding: Operators and gates)

The gate.
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// Every form of a name that a report may have is explained.
func TestNames(t *testing.T) {
	entries := explain.Entries()
	for _, name := range []string{
		"AdminAck-ack-4.18-x", "APIService-v1beta1.custom.metrics.k8s.io", "ClusterOperatorDegraded-dns", "ClusterOperatorUpgradeable-etcd",
		"Conversion-widgets.example.com", "ExternalDependency-example.com", "IncompatibleOperator-ns.name",
		"KubeletMinorVersionUpgradeable-worker",
		"MachineConfigPool-worker", "MachineSet-workers", "MutatingWebhookSelectsItself-consul", "NamespaceTerminating-stuck", "NodesCordoned",
		"NodesMemoryPressure", "NodesNotManaged", "PodDisruptionBudget-default.billing", "PodDisruptionBudgets-default.a", "PolicyBinding-deny",
		"RemovedAPI-flowschemas.v1beta1", "ValidatingWebhookSelectsItself-consul",
	} {
		if _, err := explain.Find(entries, name); err != nil {
			t.Error(err)
		}
	}
}

// The name of a problem of any kind is explained: by the entry of its reason, or by a general one.
func TestProblemsOfAnyKind(t *testing.T) {
	entries := explain.Entries()
	for name, tc := range map[string]struct {
		reason string
		// want is the package of the entry, and named the name of it; none for an unknown word.
		want, named string
	}{
		"CronJobNotScheduled":        {reason: "a reason of any kind", want: "collector/baseline/health", named: "NotScheduled"},
		"ReplicaSetCrashLoopBackOff": {reason: "a reason of pods", want: "collector/baseline/sample", named: "CrashLoopBackOff"},
		"KafkaPartsGone":             {reason: "only a comparison finds it", want: "collector/afterupdate/regression", named: "PartsGone"},
		"RolloutNotHealthy":          {reason: "a condition is False", want: "collector/baseline/health", named: "RolloutNotHealthy"},
		"KafkaNotReady":              {reason: "nodes have a reason of the same name", want: "collector/baseline/health", named: "KafkaNotReady"},
		"MetalLBDegraded":            {reason: "a condition is True", want: "collector/baseline/health", named: "MetalLBDegraded"},
		"ClusterPolicyStateNotready": {
			reason: "a field of the status has this value", want: "collector/baseline/health",
			named: "ClusterPolicyStateNotready",
		},
		"VSphereTooOld":  {reason: "the reason of a condition"},
		"quorum-NotLost": {reason: "the check of an operator"},
	} {
		page, err := explain.Find(entries, name)
		if tc.want == "" {
			if err == nil {
				t.Errorf("%s (%s): found %+v", name, tc.reason, page.Entries)
			}
			continue
		}
		if err != nil || len(page.Entries) != 1 || page.Entries[0].Package != tc.want || page.Entries[0].Name != tc.named ||
			page.Entries[0].Subject != "After an update" {
			t.Errorf("%s (%s): error %v, entries %+v", name, tc.reason, err, page.Entries)
		}
	}
}

// The name of a problem after an update is explained, also where a check has a finding of the same name.
func TestProblemsAfterUpdate(t *testing.T) {
	entries := explain.Entries()
	for _, tc := range after.Regressions() {
		for _, problem := range slices.Concat(tc.Worse, tc.Also) {
			words := strings.Fields(problem) // the kind, the object and the reason
			if _, err := explain.Find(entries, words[0]+words[len(words)-1]+"-"+tc.Name); err != nil {
				t.Errorf("%s: %v", tc, err)
			}
		}
	}
	for name, want := range map[string][]string{
		"NodeNotReady": {"runner/image/pull", "collector/baseline/sample"},
		"validatingwebhookconfigurationnoreadyendpoints": {"collector/baseline/sample"},
		"StatefulSetRolled": {"collector/afterupdate/regression"},
	} {
		page, err := explain.Find(entries, name)
		var got []string
		for _, entry := range page.Entries {
			got = append(got, entry.Package)
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: error %v, packages -want +got:\n%s", name, err, diff)
		}
	}
}
