package acceptance_test

import (
	"strings"
	"testing"

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
		"Blank":   {reason: "a blank name matches none", clusters: "{names: ['']}", want: "empty name"},
		"Number":  {reason: "clusters is a list or an object", clusters: "7", want: "entry 1 (\"RiskA\"): clusters"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := acceptance.Read("accept.yaml", strings.NewReader(head+entry("RiskA", "  clusters: "+tc.clusters)))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
	if _, err := acceptance.Read("accept.yaml", strings.NewReader(head+entry("RiskA", "  clusters: {matchLabels: {env: a}}")+entry("RiskA", "  clusters: {matchLabels: {env: b}}"))); err != nil {
		t.Errorf("no cluster has both labels: %v", err)
	}
}
