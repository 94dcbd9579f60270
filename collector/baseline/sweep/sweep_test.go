package sweep_test

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/collector/baseline"
	"github.com/openshift/update-preflight/collector/baseline/ownership"
	"github.com/openshift/update-preflight/collector/baseline/sweep"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/test/apiserver"
)

// read reads the objects of a server, which may refuse to list a resource.
func read(tb testing.TB, server *apiserver.Server, options sweep.Options) (map[baseline.Key]baseline.Object, sweep.Swept) {
	tb.Helper()
	api, err := cluster.Connect(server.Config(), "test")
	if err != nil {
		tb.Fatal(err)
	}
	found := map[baseline.Key]baseline.Object{}
	options.Now = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	options.Keep = func(key baseline.Key, object baseline.Object) { found[key] = object }
	swept, err := sweep.Read(tb.Context(), snapshot.Of(api), options)
	if err != nil {
		tb.Fatal(err)
	}
	return found, swept
}

// add adds objects, YAML that "---" separates.
func add(tb testing.TB, server *apiserver.Server, objects string) {
	tb.Helper()
	for text := range strings.SplitSeq(objects, "---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
			tb.Fatalf("%v: %s", err, text)
		}
		server.Add(tb, object)
	}
}

// serve is a server with a kind that has a status as a subresource (Widget), one that has it without (Gadget), one of the cluster
// (Issuer), and one without a status (Note).
func serve(tb testing.TB) *apiserver.Server {
	tb.Helper()
	server := apiserver.Start(tb)
	for resource, status := range map[string]bool{"Widget": true, "Gadget": false, "Issuer": true, "Note": false} {
		server.ServeAs(metav1.APIResource{
			Group: "example.com", Version: "v1", Name: strings.ToLower(resource) + "s", Kind: resource,
			Namespaced: resource != "Issuer",
		}, status)
	}
	return server
}

const (
	widget = baseline.Kind("Widget.example.com")
	gadget = baseline.Kind("Gadget.example.com")
	issuer = baseline.Kind("Issuer.example.com")
	note   = baseline.Kind("Note.example.com")
)

// objects are of all kinds.
const objects = `{apiVersion: example.com/v1, kind: Widget, metadata: {name: a, namespace: shop, generation: 3}, spec: {replicas: 2}, status: {readyReplicas: 1}}
---
{apiVersion: example.com/v1, kind: Widget, metadata: {name: leaving, namespace: shop, deletionTimestamp: '2026-11-25T11:00:00Z', finalizers: [a/b]}, status: {phase: Failed}}
---
{apiVersion: example.com/v1, kind: Gadget, metadata: {name: b, namespace: shop, generation: 3, ownerReferences: [{apiVersion: example.com/v1, kind: Widget, name: a, uid: u, controller: true}]}, status: {phase: Failed}}
---
{apiVersion: example.com/v1, kind: Issuer, metadata: {name: c}, status: {conditions: [{type: Ready, status: 'True'}]}}
---
{apiVersion: example.com/v1, kind: Note, metadata: {name: d, namespace: shop}}
---
{apiVersion: v1, kind: Secret, metadata: {name: e, namespace: shop}, data: {}}
---
{apiVersion: v1, kind: Pod, metadata: {name: f, namespace: shop}, status: {phase: Failed}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: g, namespace: shop}, status: {}}
---
{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: h, namespace: openshift-ingress}, status: {conditions: [{type: ScalingActive, status: 'False', reason: FailedGetResourceMetric}]}}`

// What is read of which kinds.
func TestRead(t *testing.T) {
	server := serve(t)
	add(t, server, objects)
	var mutex sync.Mutex
	listed := map[string]int{}
	server.Deny(func(_ string, request apiserver.Request) bool {
		mutex.Lock()
		defer mutex.Unlock()
		listed[request.Resource+"."+request.Group]++
		return request.Resource == "issuers"
	})
	ours := ownership.Of(
		[]configv1.ClusterOperator{{Status: configv1.ClusterOperatorStatus{RelatedObjects: []configv1.ObjectReference{{
			Resource: "namespaces",
			Name:     "openshift-ingress",
		}}}}})
	found, swept := read(t, server, sweep.Options{Owners: ours, Definitions: map[string]bool{"gadgets.example.com": true}})
	keys := slices.SortedFunc(maps.Keys(found), baseline.Key.Compare)
	a, b := baseline.Key{Kind: widget, Namespace: "shop", Name: "a"}, baseline.Key{Kind: gadget, Namespace: "shop", Name: "b"}
	h := baseline.Key{Kind: "HorizontalPodAutoscaler.autoscaling", Namespace: "openshift-ingress", Name: "h"}
	if diff := cmp.Diff([]baseline.Key{b, h, a}, keys); diff != "" {
		t.Fatalf("-want +got:\n%s", diff)
	}
	if found[a].Generation != 3 || found[b].Generation != 0 {
		t.Errorf("generations %d, and %d without a subresource, whose each change changes it", found[a].Generation, found[b].Generation)
	}
	if found[b].Owner != a || found[a].UID == "" || found[a].UID == found[b].UID || found[a].Release || !found[h].Release {
		t.Errorf("%+v, %+v, %+v", found[a], found[b], found[h])
	}
	for key, want := range map[baseline.Key]string{a: "PartsNotReady", b: "PhaseFailed", h: "NotScalingActive"} {
		if _, has := found[key].Problem(want); !has {
			t.Errorf("%s: %+v, want %s", key, found[key].Problems, want)
		}
	}
	for _, resource := range []string{
		"secrets.", "configmaps.", "pods.", "events.", "deployments.apps", "replicasets.apps",
		"notes.example.com",
	} {
		if listed[resource] > 0 {
			t.Errorf("%s were listed", resource)
		}
	}
	if err := swept.Unread[issuer]; err == nil || !strings.Contains(err.Error(), "issuers.example.com") || len(swept.Unread) != 1 {
		t.Errorf("not read: %v", swept.Unread)
	}
	for kind, want := range map[baseline.Kind]bool{
		widget: true, gadget: true, issuer: true, note: false, baseline.Deployment: false,
		"Secret": false,
	} {
		if _, has := swept.APIs[kind]; has != want {
			t.Errorf("%s: API %t, want %t", kind, has, want)
		}
	}
	if got := swept.APIs[widget]; got != (baseline.API{Version: "example.com/v1", Resource: "widgets"}) {
		t.Errorf("%+v", got)
	}
}

// Only the kinds that are wanted are read, and a kind without a status only if a definition names it.
func TestOnly(t *testing.T) {
	server := serve(t)
	add(t, server, `{apiVersion: example.com/v1, kind: Widget, metadata: {name: a, namespace: shop}, status: {phase: Failed}}
---
{apiVersion: example.com/v1, kind: Gadget, metadata: {name: b, namespace: shop}, status: {phase: Failed}}
---
{apiVersion: example.com/v1, kind: Issuer, metadata: {name: c}, status: {phase: Failed}}`)
	found, swept := read(t, server, sweep.Options{Only: map[baseline.Kind]bool{widget: true, gadget: true}})
	if _, has := found[baseline.Key{Kind: widget, Namespace: "shop", Name: "a"}]; !has || len(found) != 1 || len(swept.APIs) != 1 ||
		len(swept.Unread) > 0 {
		t.Errorf("%v, %v", found, swept)
	}
}

// What a spec names: by a kind and a name, or as a Service.
func TestRefs(t *testing.T) {
	service := baseline.Key{Kind: baseline.Service, Namespace: "shop", Name: "web"}
	for name, tc := range map[string]struct {
		reason, spec string
		want         []baseline.Key
	}{
		"Target": {
			reason: "an autoscaler", spec: "{scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}",
			want: []baseline.Key{{Kind: baseline.Deployment, Namespace: "shop", Name: "web"}},
		},
		"Custom": {
			reason: "of a kind without a row", spec: "{scaleTargetRef: {apiVersion: argoproj.io/v1alpha1, kind: Rollout, name: web}}",
			want: []baseline.Key{{Kind: "Rollout.argoproj.io", Namespace: "shop", Name: "web"}},
		},
		"Group": {
			reason: "the group may be a field of its own", spec: "{ref: {group: example.com, kind: Widget, name: b}}",
			want: []baseline.Key{{Kind: widget, Namespace: "shop", Name: "b"}},
		},
		"Issuer": {
			reason: "who has all objects knows that this one is in no namespace",
			spec:   "{issuerRef: {group: example.com, kind: Issuer, name: c}}", want: []baseline.Key{{Kind: issuer, Namespace: "shop", Name: "c"}},
		},
		"Namespace": {
			reason: "it may be in another namespace", spec: "{backendRefs: [{kind: Service, name: web, namespace: other, port: 80}]}",
			want: []baseline.Key{{Kind: baseline.Service, Namespace: "other", Name: "web"}},
		},
		"Default": {
			reason: "the default backend of an Ingress", spec: "{defaultBackend: {service: {name: web, port: {number: 80}}}}",
			want: []baseline.Key{service},
		},
		"Ingress": {reason: "a rule of an Ingress", spec: "{rules: [{host: a.example.com, http: {paths: [{path: /, backend: {service: " +
			"{name: web, port: {number: 80}}}}]}}]}", want: []baseline.Key{service}},
		"Nameless": {reason: "a template names no object", spec: "{template: {kind: Widget, apiVersion: example.com/v1}}"},
		"Garbage":  {reason: "a name that is none", spec: "{ref: {kind: Widget, name: 7}, other: [[{kind: 3, name: a}]]}"},
		"BadAPI":   {reason: "an API that cannot be read", spec: "{ref: {apiVersion: a/b/c, kind: Widget, name: x}}"},
		"Twice":    {reason: "each once", spec: "{a: {service: {name: web}}, b: {service: {name: web}}}", want: []baseline.Key{service}},
	} {
		t.Run(name, func(t *testing.T) {
			server := serve(t)
			add(t, server, "{apiVersion: example.com/v1, kind: Issuer, metadata: {name: c}}\n---\n{apiVersion: example.com/v1, kind: "+
				"Widget, metadata: {name: a, namespace: shop}, spec: "+tc.spec+"}")
			found, _ := read(t, server, sweep.Options{Only: map[baseline.Kind]bool{widget: true}})
			if diff := cmp.Diff(tc.want, found[baseline.Key{Kind: widget, Namespace: "shop", Name: "a"}].Refs); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// A spec that names a thousand objects, or nests without an end, has few references.
func TestManyRefs(t *testing.T) {
	server := serve(t)
	refs := ""
	for i := range 1000 {
		refs += "{kind: Service, name: web-" + strconv.Itoa(i) + "},"
	}
	add(t, server, "{apiVersion: example.com/v1, kind: Widget, metadata: {name: a, namespace: shop}, spec: {refs: ["+refs+"], deep: "+
		strings.Repeat("{a: ", 200)+"1"+strings.Repeat("}", 200)+"}}")
	found, _ := read(t, server, sweep.Options{Only: map[baseline.Kind]bool{widget: true}})
	if got := len(found[baseline.Key{Kind: widget, Namespace: "shop", Name: "a"}].Refs); got == 0 || got > 50 {
		t.Errorf("%d references", got)
	}
}
