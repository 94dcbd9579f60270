package acceptance_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/acceptance"
	"github.com/openshift/update-preflight/collector/internal/checktest"
)

func TestParseChange(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		argument string
		want     acceptance.Change
		bad      string
	}{
		"One": {reason: "one name", argument: "RiskA", want: acceptance.Change{Add: []string{"RiskA"}}},
		"Mixed": {
			reason: "names to add and to remove, with spaces", argument: "RiskA, RiskB- ,RiskC",
			want: acceptance.Change{Add: []string{"RiskA", "RiskC"}, Remove: []string{"RiskB"}},
		},
		"WithDashes": {
			reason: "only the last dash is no part of the name", argument: "AdminAck-ack-4.18-x-",
			want: acceptance.Change{Remove: []string{"AdminAck-ack-4.18-x"}},
		},
		"Both": {
			reason: "a risk is added and removed", argument: "RiskA,RiskB-,RiskA-,RiskB",
			bad: "requests both to add and to remove these risks: RiskA, RiskB",
		},
		"Nothing":    {reason: "an empty name", argument: "", bad: `illegal risk ""`},
		"Gap":        {reason: "two commas", argument: "RiskA,,RiskB", bad: `illegal risk ""`},
		"Dash":       {reason: "a dash without a name", argument: "-", bad: `illegal risk ""`},
		"Prefix":     {reason: "the dash is at the end", argument: "-RiskA", bad: "put the dash at the end: RiskA-"},
		"SmallCase":  {reason: "CVO drops such a name", argument: "RiskA,riskB", bad: `illegal risk "riskB"`},
		"Underscore": {reason: "CVO drops such a name", argument: "Risk_A-", bad: `illegal risk "Risk_A"`},
		"TooLong":    {reason: "ClusterVersion rejects such a name", argument: "R" + strings.Repeat("x", 256), bad: "257 characters"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := acceptance.ParseChange(tc.argument)
			if tc.bad != "" {
				if err == nil || !strings.Contains(err.Error(), tc.bad) {
					t.Errorf("%s: error %v, want %q in it", tc.reason, err, tc.bad)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

const image = "quay.io/openshift-release-dev/ocp-release@sha256:1111111111111111111111111111111111111111111111111111111111111111"

// clusterVersion has this desired update, or none for nil.
func clusterVersion(desired map[string]any) *unstructured.Unstructured {
	spec := map[string]any{"clusterID": "6ba7b810-9dad-41d1-80b4-00c04fd430c8", "channel": "stable-4.18"}
	if desired != nil {
		spec["desiredUpdate"] = desired
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion", "metadata": map[string]any{"name": "version"}, "spec": spec,
	}}
}

func accepts(names ...string) []any {
	var risks []any
	for _, name := range names {
		risks = append(risks, map[string]any{"name": name})
	}
	return risks
}

// desired is the present desired update.
func desired(t *testing.T, config *rest.Config) map[string]any {
	t.Helper()
	found, err := client(config).Resource(configv1.GroupVersion.WithResource("clusterversions")).Get(t.Context(), "version",
		metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	update, _, err := unstructured.NestedMap(found.Object, "spec", "desiredUpdate")
	if err != nil {
		t.Fatal(err)
	}
	return update
}

func client(config *rest.Config) dynamic.Interface {
	config = rest.CopyConfig(config)
	config.WarningHandlerWithContext = rest.NoWarnings{}
	return dynamic.NewForConfigOrDie(config)
}

func TestWrite(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		before  map[string]any
		change  acceptance.Change
		want    []string
		after   map[string]any
		changed bool
	}{
		"First": {
			reason: "acceptRisks alone is valid", change: acceptance.Change{Add: []string{"RiskB", "RiskA"}},
			want: []string{"RiskB", "RiskA"}, after: map[string]any{"acceptRisks": accepts("RiskB", "RiskA")}, changed: true,
		},
		"Append": {
			reason: "present risks are kept", before: map[string]any{"acceptRisks": accepts("RiskZ")},
			change: acceptance.Change{Add: []string{"RiskA", "RiskZ"}},
			want:   []string{"RiskZ", "RiskA"}, after: map[string]any{"acceptRisks": accepts("RiskZ", "RiskA")}, changed: true,
		},
		"Remove": {
			reason: "one is removed, and one that is absent is ignored",
			before: map[string]any{"acceptRisks": accepts("RiskA", "RiskB")}, change: acceptance.Change{Remove: []string{"RiskA", "RiskC"}},
			want: []string{"RiskB"}, after: map[string]any{"acceptRisks": accepts("RiskB")}, changed: true,
		},
		"Replace": {
			reason: "all others are removed", before: map[string]any{"acceptRisks": accepts("RiskA", "RiskB")},
			change: acceptance.Change{Add: []string{"RiskC", "RiskB"}, Replace: true},
			want:   []string{"RiskB", "RiskC"}, after: map[string]any{"acceptRisks": accepts("RiskB", "RiskC")}, changed: true,
		},
		"Clear": {
			reason: "an empty update is invalid for CVO, so it is removed too",
			before: map[string]any{"acceptRisks": accepts("RiskA")}, change: acceptance.Change{Replace: true}, want: []string{}, changed: true,
		},
		"ClearBesidesTheUpdate": {
			reason: "version, image, mode and force are kept",
			before: map[string]any{"acceptRisks": accepts("RiskA"), "version": "4.18.16", "image": image, "mode": "Preflight", "force": true},
			change: acceptance.Change{Replace: true}, want: []string{},
			after: map[string]any{"version": "4.18.16", "image": image, "mode": "Preflight", "force": true}, changed: true,
		},
		"ClearBesidesTheMode": {
			reason: "a mode alone is kept",
			before: map[string]any{"acceptRisks": accepts("RiskA"), "mode": "Preflight"}, change: acceptance.Change{Remove: []string{"RiskA"}},
			want:  []string{},
			after: map[string]any{"mode": "Preflight"}, changed: true,
		},
		"AddBesidesTheUpdate": {
			reason: "version, image and mode are kept", before: map[string]any{"version": "4.18.16", "image": image, "mode": "Preflight"},
			change: acceptance.Change{Add: []string{"RiskA"}},
			want:   []string{"RiskA"}, after: map[string]any{
				"version": "4.18.16", "image": image, "mode": "Preflight",
				"acceptRisks": accepts("RiskA"),
			}, changed: true,
		},
		"Nothing": {reason: "clearing no risks writes nothing", change: acceptance.Change{Replace: true}, want: []string{}},
		"AlreadyThere": {
			reason: "a present risk is not written again", before: map[string]any{"acceptRisks": accepts("RiskA")},
			change: acceptance.Change{Add: []string{"RiskA"}}, want: []string{"RiskA"}, after: map[string]any{"acceptRisks": accepts("RiskA")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server.Create(t, clusterVersion(tc.before))
			kept, err := acceptance.Write(t.Context(), client(config), tc.change)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(acceptance.Kept{Risks: tc.want, Changed: tc.changed}, kept); diff != "" {
				t.Errorf("%s: kept -want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.after, desired(t, config)); diff != "" {
				t.Errorf("%s: the server stored -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestWriteReturnsTheRisksOfTheUpdates(t *testing.T) {
	created := clusterVersion(nil)
	risk := func(name string) map[string]any {
		return map[string]any{
			"name": name, "url": "https://example.com", "message": "m",
			"matchingRules": []any{map[string]any{"type": "Always"}},
		}
	}
	created.Object["status"] = map[string]any{
		"availableUpdates": nil, "desired": map[string]any{"version": "4.18.3", "image": image}, "observedGeneration": int64(1),
		"versionHash": "",
		"conditionalUpdates": []any{map[string]any{
			"release": map[string]any{"version": "4.18.16", "image": image}, "risks": []any{risk("RiskB"), risk("RiskA")},
		}},
	}
	server.Create(t, created)
	kept, err := acceptance.Write(t.Context(), client(config), acceptance.Change{Add: []string{"Misspelled"}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"RiskA", "RiskB"}, kept.Known); diff != "" {
		t.Errorf("a misspelled name can be recognized: -want +got:\n%s", diff)
	}
}

func TestWriteWithoutTheFeature(t *testing.T) {
	for name, before := range map[string]map[string]any{"NoUpdate": nil, "Update": {"version": "4.18.16", "image": image}} {
		t.Run(name, func(t *testing.T) {
			checktest.Connect(plain).Create(t, clusterVersion(before))
			_, err := acceptance.Write(t.Context(), client(plain), acceptance.Change{Add: []string{"RiskA"}})
			notKept(t, err, "ClusterUpdateAcceptRisks is off", "acceptance file")
			if strings.Contains(err.Error(), "TechPreview") {
				t.Errorf("%v: the error must not recommend a feature set that prevents updates", err)
			}
			if diff := cmp.Diff(before, desired(t, plain)); diff != "" {
				t.Errorf("the desired update was changed: -want +got:\n%s", diff)
			}
			kept, err := acceptance.Write(t.Context(), client(plain), acceptance.Change{Replace: true})
			if err != nil || kept.Changed {
				t.Errorf("clearing no risks: %+v, %v", kept, err)
			}
		})
	}
}

// notKept verifies an error of a cluster without accepted risks, and parts of it.
func notKept(t *testing.T, err error, wanted ...string) {
	t.Helper()
	if _, ok := errors.AsType[*acceptance.NotKeptError](err); !ok {
		t.Fatalf("error %v, want a NotKeptError", err)
	}
	for _, want := range append(wanted, "nothing was changed") {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q, want %q in it", err, want)
		}
	}
}

func TestWriteOnAHostedCluster(t *testing.T) {
	hosted := &configv1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
	hosted.Status.ControlPlaneTopology = configv1.ExternalTopologyMode
	hosted.Status.InfrastructureTopology = configv1.HighlyAvailableTopologyMode
	server.Create(t, hosted, clusterVersion(map[string]any{"acceptRisks": accepts("RiskA")}))
	_, err := acceptance.Write(t.Context(), client(config), acceptance.Change{Add: []string{"RiskB"}})
	notKept(t, err, "HyperShift")
	if _, err := acceptance.Write(t.Context(), client(config), acceptance.Change{Replace: true}); err != nil {
		t.Errorf("risks can be cleared on a hosted cluster: %v", err)
	}
}

func TestWriteErrors(t *testing.T) {
	if _, err := acceptance.Write(t.Context(), client(config), acceptance.Change{Add: []string{"RiskA"}}); !apierrors.IsNotFound(err) {
		t.Errorf("without a ClusterVersion: %v, want NotFound", err)
	}
	thousand := make([]string, 1000)
	for i := range thousand {
		thousand[i] = fmt.Sprintf("Risk%d", i)
	}
	server.Create(t, clusterVersion(map[string]any{"acceptRisks": accepts(thousand...)}))
	if _, err := acceptance.Write(t.Context(), client(config), acceptance.Change{Add: []string{"RiskA"}}); err == nil ||
		!strings.Contains(err.Error(), "1001 accepted risks") {
		t.Errorf("more than the limit: %v", err)
	}
	unprivileged := rest.CopyConfig(config)
	unprivileged.Impersonate.UserName = checktest.UnprivilegedUser
	if _, err := acceptance.Write(t.Context(), client(unprivileged), acceptance.Change{Add: []string{"RiskA"}}); !apierrors.IsForbidden(err) {
		t.Errorf("without permissions: %v, want Forbidden", err)
	}
}

// contender is a transport with another writer between a read and a write.
type contender struct {
	http.RoundTripper

	write func()
	left  *atomic.Int32
}

// RoundTrip implements http.RoundTripper.
func (c contender) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method == http.MethodPatch && c.left.Add(-1) >= 0 {
		c.write()
	}
	return c.RoundTripper.RoundTrip(request)
}

func TestWriteContested(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		times  int32
		want   bool
	}{
		"Once":   {"the second attempt reads the other change", 1, true},
		"Always": {"the number of attempts is bounded", 1000, false},
	} {
		t.Run(name, func(t *testing.T) {
			server.Create(t, clusterVersion(map[string]any{"version": "4.18.16"}))
			contested := rest.CopyConfig(config)
			count := 0
			left := &atomic.Int32{}
			left.Store(tc.times)
			contested.Wrap(func(inner http.RoundTripper) http.RoundTripper {
				return contender{inner, func() { count++; rename(t, count) }, left}
			})
			_, err := acceptance.Write(t.Context(), client(contested), acceptance.Change{Add: []string{"RiskA"}})
			if (err == nil) != tc.want || (err != nil && !apierrors.IsConflict(err)) {
				t.Fatalf("%s: error %v", tc.reason, err)
			}
			after := desired(t, config)
			if _, accepted := after["acceptRisks"]; accepted != tc.want || after["version"] != fmt.Sprintf("4.18.%d", 16+count) {
				t.Errorf("%s: the server stored %v after %d other writes", tc.reason, after, count)
			}
		})
	}
}

// rename changes the target of the update.
func rename(t *testing.T, count int) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"desiredUpdate": map[string]any{"version": fmt.Sprintf("4.18.%d",
		16+count)}}})
	if err != nil {
		t.Error(err)
	}
	versions := client(config).Resource(configv1.GroupVersion.WithResource("clusterversions"))
	if _, err := versions.Patch(t.Context(), "version", "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
		t.Error(err)
	}
}
