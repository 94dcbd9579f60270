package baseline_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/openshift/update-preflight/collector/baseline"
)

// constants are the constants of type Kind in kinds.go, by their names in Go.
func constants(tb testing.TB) map[string]baseline.Kind {
	tb.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "kinds.go", nil, parser.SkipObjectResolution)
	if err != nil {
		tb.Fatal(err)
	}
	found := map[string]baseline.Kind{}
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok {
			return true
		}
		kind, typed := spec.Type.(*ast.Ident)
		if !typed || kind.Name != "Kind" {
			return false
		}
		for at, name := range spec.Names {
			value, literal := spec.Values[at].(*ast.BasicLit)
			if !literal {
				tb.Fatalf("%s is no literal", name.Name)
			}
			text, err := strconv.Unquote(value.Value)
			if err != nil {
				tb.Fatal(err)
			}
			found[name.Name] = baseline.Kind(text)
		}
		return false
	})
	return found
}

// Every constant has a row, and every row a constant: a kind that is left out would be read in no way of its own.
func TestEveryKindHasARow(t *testing.T) {
	rows := map[baseline.Kind]bool{}
	for _, row := range baseline.Rows() {
		if rows[row.Kind] {
			t.Errorf("%s has two rows", row.Kind)
		}
		rows[row.Kind] = true
	}
	named := constants(t)
	if len(named) < 30 {
		t.Fatalf("only %d constants were found", len(named))
	}
	known := map[baseline.Kind]bool{}
	for name, kind := range named {
		known[kind] = true
		without := slices.Contains([]baseline.Kind{baseline.Namespace, baseline.Pod}, kind) // of which the name alone is kept
		if rows[kind] == without {
			t.Errorf("%s: row %t, want %t", name, rows[kind], !without)
		}
	}
	for kind := range rows {
		if !known[kind] {
			t.Errorf("%s has a row, and no constant", kind)
		}
	}
}

func TestRowsAreComplete(t *testing.T) {
	absences := []baseline.Absence{baseline.Listed, baseline.Fleeting, baseline.Lost, baseline.OfNodes}
	for _, row := range baseline.Rows() {
		alert := row.Kind == baseline.Alert
		if alert != (row.Version == "") || alert != (row.Resource == "") {
			t.Errorf("%s: version %q, resource %q", row.Kind, row.Version, row.Resource)
		}
		if row.Resource != "" && !strings.HasPrefix(row.Resource, strings.ToLower(string(row.Kind))) {
			t.Errorf("%s: resource %q is of another kind", row.Kind, row.Resource)
		}
		if row.Limit <= 0 && len(row.Limits) == 0 {
			t.Errorf("%s has no limit", row.Kind)
		}
		if !slices.Contains(absences, row.Absence) {
			t.Errorf("%s: absence %q", row.Kind, row.Absence)
		}
		if row.Limit <= 0 && row.Kind != baseline.ClusterVersion { // the others of ClusterVersion state what cannot pass by itself
			t.Errorf("%s has no limit for a reason that is not listed", row.Kind)
		}
		if row.Served && row.Named {
			t.Errorf("%s: the Detail is a Service and the name of a user", row.Kind)
		}
	}
}

// A kind is found by its API group and name: one of the same name in another group is another kind.
func TestKindOf(t *testing.T) {
	for _, row := range baseline.Rows() {
		group, _, grouped := strings.Cut(row.Version, "/")
		if !grouped {
			group = ""
		}
		if got := baseline.KindOf(group, string(row.Kind)); got != row.Kind || !got.Known() || got.Name() != string(row.Kind) {
			t.Errorf("%s of %q is %s", row.Kind, group, got)
		}
		other := baseline.KindOf("example.com", string(row.Kind))
		if other == row.Kind || other.Known() || other.Name() != string(row.Kind) {
			t.Errorf("%s of another group is %s", row.Kind, other)
		}
	}
	for name, tc := range map[string]struct{ reason, group, kind, want string }{
		"Core": {reason: "it has no group", kind: "ResourceQuota", want: "ResourceQuota"},
		"Knative": {
			reason: "its Service is none of Kubernetes", group: "serving.knative.dev", kind: "Service",
			want: "Service.serving.knative.dev",
		},
		"Config": {
			reason: "the Node of the configuration is none", group: "config.openshift.io", kind: "Node",
			want: "Node.config.openshift.io",
		},
		"CAPI": {
			reason: "the MachineSet of Cluster API is another one", group: "cluster.x-k8s.io", kind: "MachineSet",
			want: "MachineSet.cluster.x-k8s.io",
		},
		"Alert": {
			reason: "no API has the alerts of a State", group: "monitoring.example.com", kind: "Alert",
			want: "Alert.monitoring.example.com",
		},
		"Legacy": {
			reason: "an API that is served twice is another kind", group: "extensions", kind: "Deployment",
			want: "Deployment.extensions",
		},
	} {
		if got := baseline.KindOf(tc.group, tc.kind); got != baseline.Kind(tc.want) {
			t.Errorf("%s: %s, want %s: %s", name, got, tc.want, tc.reason)
		}
	}
}

// A kind without a row is judged as well.
func TestKindWithoutRow(t *testing.T) {
	row := baseline.RowOf("CephCluster.ceph.rook.io")
	if row.LimitOf("HealthHealthErr") <= 0 || row.LimitOf("InProgress") <= row.LimitOf("HealthHealthErr") || row.Absence != baseline.Listed ||
		!row.Independent {
		t.Errorf("%+v", row)
	}
	if pods := baseline.RowOf(baseline.Deployment); row.LimitOf("Restarting") != pods.LimitOf("Restarting") {
		t.Error("its pods have other limits than those of a Deployment")
	}
	state := baseline.State{APIs: map[baseline.Kind]baseline.API{
		"CephCluster.ceph.rook.io": {Version: "ceph.rook.io/v1", Resource: "cephclusters"},
		"ResourceQuota":            {Version: "v1", Resource: "resourcequotas"},
	}}
	for kind, want := range map[baseline.Kind]string{
		"CephCluster.ceph.rook.io": "ceph.rook.io/v1 cephclusters.ceph.rook.io", "ResourceQuota": "v1 resourcequotas",
		baseline.Subscription: "operators.coreos.com/v1alpha1 subscription.operators.coreos.com", "Widget.example.com": " widget",
	} {
		if version, resource := state.APIOf(kind); version+" "+resource != want {
			t.Errorf("%s: %s %s, want %s", kind, version, resource, want)
		}
	}
}
