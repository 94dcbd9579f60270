package acceptance_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/openshift/update-preflight/collector/acceptance"
)

func TestMembersOfAFleet(t *testing.T) {
	labels := map[string]string{"env": "production", "region": "eu"}
	for name, tc := range map[string]struct {
		reason, clusters string
		single, want     bool
	}{
		"All":         {reason: "an entry without clusters is for all", single: true, want: true},
		"IDs":         {reason: "IDs are judged once the cluster was read", clusters: "[c1]", single: true, want: true},
		"Name":        {reason: "the name is in the list", clusters: "{names: [other, prod-1]}", want: true},
		"OtherName":   {reason: "the name is not in the list", clusters: "{names: [prod-2]}"},
		"Label":       {reason: "the label has that value", clusters: "{matchLabels: {env: production}}", want: true},
		"OtherLabel":  {reason: "the label has another value", clusters: "{matchLabels: {env: test}}"},
		"NoLabel":     {reason: "the cluster does not have the label", clusters: `{matchLabels: {tier: ""}}`},
		"EveryLabel":  {reason: "all labels must match", clusters: "{matchLabels: {env: production, region: us}}"},
		"NameNoLabel": {reason: "name and labels must match", clusters: "{names: [prod-1], matchLabels: {env: test}}"},
	} {
		t.Run(name, func(t *testing.T) {
			limit := ""
			if tc.clusters != "" {
				limit = "  clusters: " + tc.clusters
			}
			all := read(t, entry("RiskA", limit))
			if got := len(acceptance.For(all, "prod-1", labels)) == 1; got != tc.want {
				t.Errorf("%s: %t", tc.reason, got)
			}
			if err := acceptance.CheckSingle(all); (err == nil) != tc.single {
				t.Errorf("%s: for a single cluster: %v", tc.reason, err)
			}
		})
	}
}

func TestScopesThatAreWrong(t *testing.T) {
	for name, tc := range map[string]struct{ reason, clusters, want string }{
		"Empty":   {reason: "an empty scope would be for all", clusters: "{}", want: "neither ids nor names nor matchLabels"},
		"Unknown": {reason: "a misspelled limit would be none", clusters: "{labels: {env: production}}", want: "unknown field"},
		"Blank":   {reason: "a blank name matches none", clusters: "{names: ['']}", want: "empty cluster name"},
		"Number":  {reason: "clusters is a list or an object", clusters: "7", want: "entry 1 (\"RiskA\"): clusters"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := acceptance.Read("accept.yaml", strings.NewReader(head+entry("RiskA", "  clusters: "+tc.clusters)))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
	if _, err := acceptance.Read("accept.yaml", strings.NewReader(head+entry("RiskA", "  clusters: {matchLabels: {env: a}}")+entry("RiskA",
		"  clusters: {matchLabels: {env: b}}"))); err != nil {
		t.Errorf("no cluster has both labels: %v", err)
	}
}

const head = "apiVersion: preflight.openshift.io/v1alpha1\nkind: AcceptedRisks\nrisks:\n"

// entry is one entry of a file; more are further fields, each on a line.
func entry(risk string, more ...string) string {
	lines := append([]string{"- risk: " + risk, "  reason: seen", "  owner: ann"}, more...)
	return strings.Join(lines, "\n") + "\n"
}

func TestReadAcceptsTheDocumentedFields(t *testing.T) {
	file, err := os.Open(filepath.Join("testdata", "accept.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // nothing was written
	got, err := acceptance.Read("accept.yaml", file)
	if err != nil {
		t.Fatal(err)
	}
	want := []acceptance.Acceptance{
		{
			Risk: "OldBootImagesPodmanMissingAuthFlag", Origin: "accept.yaml, entry 1",
			Reason: "no node of ours is scaled up from boot images", Owner: "ann@example.com",
			Expires: "2027-03-31", Versions: ">=4.18.0 <4.19.0", Clusters: []string{"1c182977-5663-428d-92a3-3d2bdf3fffb6"},
		},
		{Risk: "DualStackNeedsController", Origin: "accept.yaml, entry 2", Reason: "we have no dual stack", Owner: "bob@example.com"},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(acceptance.Acceptance{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestReadRejects(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		file   string
		want   string
	}{
		"Empty":      {"an empty file is an error", "", "apiVersion"},
		"OtherKind":  {"a file of another kind", "apiVersion: v1\nkind: ConfigMap\nrisks: []\n", `"ConfigMap"`},
		"NotYAML":    {"the file is no YAML", head + "\t- x", "line"},
		"UnknownTop": {"an unknown field", head + entry("RiskA") + "more: 1\n", `"more"`},
		"UnknownField": {
			"a misspelled limit would have no effect", head + entry("RiskA", "  version: <4.19.0"),
			`entry 1 ("RiskA"): unknown field "version"`,
		},
		"OtherCase": {"the case of fields counts", head + entry("RiskA", "  Expires: 2027-01-01"), `"Expires"`},
		"Twice":     {"a duplicate field", head + entry("RiskA", "  owner: bob"), `"owner"`},
		"NoRisk":    {"the entry has no risk", head + "- reason: r\n  owner: o\n", `entry 1 (""): illegal risk ""`},
		"Null":      {"an empty entry", head + "- \n", "entry 1"},
		"IllegalName": {
			"ClusterVersion rejects such a name", head + entry("RiskA") + entry("risk_b"),
			`entry 2 ("risk_b"): illegal risk "risk_b"`,
		},
		"LongName": {"the name is too long for ClusterVersion", head + entry("R"+strings.Repeat("x", 256)), "257 characters"},
		"NoReason": {
			"a reason is required", head + "- risk: RiskA\n  reason: ' '\n  owner: o\n",
			`entry 1 ("RiskA"): the entry has no reason`,
		},
		"NoOwner":       {"an owner is required", head + "- risk: RiskA\n  reason: r\n", `entry 1 ("RiskA"): the entry has no owner`},
		"BadDate":       {"expires is not a date", head + entry("RiskA", "  expires: 31.03.2027"), `"31.03.2027"`},
		"NoSuchDay":     {"the day does not exist", head + entry("RiskA", "  expires: 2027-02-30"), `"2027-02-30"`},
		"BadRange":      {"versions is not a range", head + entry("RiskA", "  versions: 4.18"), "versions"},
		"SilentRange":   {"the parser of ranges drops the last word", head + entry("RiskA", "  versions: '>=4.18.0 5'"), "is not a range"},
		"CrashingRange": {"the parser of ranges panics", head + entry("RiskA", "  versions: '4.18.0 || || 4.19.0'"), "is not a range"},
		"EmptyRange":    {"no version is in the range", head + entry("RiskA", "  versions: '>4.19.0 <4.18.0'"), "contains no version"},
		"LongRange": {
			"the length of a range is bounded", head + entry("RiskA", "  versions: '"+strings.Repeat("4.18.0 ", 40)+"4.18.0'"),
			"256 are the limit",
		},
		"EmptyCluster": {"no cluster has an empty ID", head + entry("RiskA", "  clusters: ['']"), "empty cluster ID"},
		"OneCluster":   {"clusters is a list", head + entry("RiskA", "  clusters: abc"), `entry 1 ("RiskA")`},
		"SecondDocument": {
			"the parser drops the second document", head + entry("RiskA") + "---\n" + head + entry("RiskB"),
			"more than one YAML document",
		},
		"AfterTheEnd": {"the parser drops the text after the end", head + entry("RiskA") + "...\nrisks: []\n", "more than one YAML document"},
		"Alias": {
			"aliases expand a small file to a big one", head + "- &a {risk: RiskA, reason: r, owner: o}\n- *a\n",
			"line 5 contains a YAML alias",
		},
		"TooMany":  {"the limit is that of ClusterVersion", head + many(1001), "1001 risks"},
		"TooLarge": {"the size of the file is bounded", head + "# " + strings.Repeat("x", 1<<20), "larger than 1048576 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := acceptance.Read("accept.yaml", strings.NewReader(tc.file))
			if err == nil {
				t.Fatalf("%s: no error", tc.reason)
			}
			for _, want := range []string{`acceptance file "accept.yaml": `, tc.want} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s: error %q, want %q in it", tc.reason, err, want)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: the error is not one line: %q", tc.reason, err)
			}
		})
	}
}

func many(count int) string {
	var text strings.Builder
	for i := range count {
		text.WriteString(entry(fmt.Sprintf("Risk%d", i)))
	}
	return text.String()
}

func TestReadAcceptsAThousandEntries(t *testing.T) {
	got, err := acceptance.Read("accept.yaml", strings.NewReader(head+many(1000)))
	if err != nil || len(got) != 1000 {
		t.Errorf("%d entries, error %v; ClusterVersion accepts 1000 too", len(got), err)
	}
}

func TestSameRiskTwice(t *testing.T) {
	for name, tc := range map[string]struct {
		reason        string
		first, second string
		overlap       bool
	}{
		"Everything":  {"both have no limits", "", "", true},
		"OneLimited":  {"a range overlaps with no limits", "", "versions: <4.19.0", true},
		"Disjoint":    {"one ends where the other begins", "versions: <4.19.0", "versions: '>=4.19.0'", false},
		"Touching":    {"both have 4.19.0", "versions: <=4.19.0", "versions: '>=4.19.0'", true},
		"Prereleases": {"4.19.0-rc.1 comes before 4.19.0", "versions: <4.19.0", "versions: '>=4.19.0-rc.1'", true},
		"PrereleaseEnd": {
			"no version is between a release and the first pre-release of the next", "versions: <4.19.0-0",
			"versions: '>=4.19.0-0'", false,
		},
		"Inside":         {"one range contains the other", "versions: '>=4.18.0 <4.20.0'", "versions: '>4.18.5 <4.18.7'", true},
		"OpenGap":        {"pre-releases of 4.18.6 are between them", "versions: '>4.18.5'", "versions: '<4.18.6'", true},
		"Exactly":        {"a single version", "versions: 4.18.5", "versions: '!=4.18.5'", false},
		"Wildcards":      {"4.18 and 4.19", "versions: 4.18.x", "versions: 4.19.x", false},
		"WildcardMajor":  {"4.18 is part of 4", "versions: 4.x", "versions: 4.18.x", true},
		"Alternatives":   {"the second alternatives overlap", "versions: '<4.1.0 || 4.18.x'", "versions: '>5.0.0 || >=4.18.9 <4.19.0'", true},
		"OtherCluster":   {"no cluster is in both lists", "clusters: [a]", "clusters: [b]", false},
		"SameCluster":    {"IDs are compared as UUIDs are", "clusters: [a, b]", "clusters: [c, B]", true},
		"BothMustBe":     {"the same cluster, other targets", "clusters: [a]\n  versions: 4.18.x", "clusters: [a]\n  versions: 4.19.x", false},
		"OneHasClusters": {"without clusters it is for all clusters", "clusters: [a]", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, pair := range [][2]string{{tc.first, tc.second}, {tc.second, tc.first}} {
				file := head + entry("Other") + entry("RiskA", "  "+pair[0]) + entry("RiskA", "  "+pair[1])
				_, err := acceptance.Read("f", strings.NewReader(file))
				if tc.overlap != (err != nil) {
					t.Errorf("%s: error %v, want one: %t", tc.reason, err, tc.overlap)
				}
				if err != nil && !strings.Contains(err.Error(), `entry 3 ("RiskA"): entry 2 accepts the same risk`) {
					t.Errorf("%s: the error does not name both entries: %v", tc.reason, err)
				}
			}
		})
	}
}

func FuzzRead(f *testing.F) {
	f.Add(head + entry("RiskA", "  versions: '>=4.18.0 <4.19.0 || 5.x !=5.1.x'", "  expires: 2027-01-01", "  clusters: [a]"))
	f.Add(head + entry("RiskA", "  expires: 2027-01-01T00:00:00Z") + entry("RiskA", "  versions: 4.18.x"))
	f.Add(`{"apiVersion":"preflight.openshift.io/v1alpha1","kind":"AcceptedRisks","risks":[{"risk":"A","reason":"b","owner":"c"}]}`)
	f.Fuzz(func(t *testing.T, file string) {
		read, err := acceptance.Read("f", strings.NewReader(file))
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("the error is not one line: %q", err)
		}
		scope := acceptance.Scope{Target: "4.18.5", Cluster: "a", Now: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)}
		for risk := range acceptance.Evaluate(read, scope).Accepted() {
			if err := acceptance.CheckName(risk); err != nil {
				t.Errorf("accepted: %v", err)
			}
		}
	})
}
