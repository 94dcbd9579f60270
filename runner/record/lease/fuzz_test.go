package lease_test

import (
	"bytes"
	"net/http"
	"path"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/recordstore"
	"github.com/openshift/update-preflight/test/transport"
)

const fuzzID = "01234567-89ab-4cde-8f01-23456789abcd"

func fuzzKey() []byte { return bytes.Repeat([]byte{7}, 32) }

// canned responds like an API server with these ConfigMaps only.
func canned(t *testing.T, objects ...*corev1.ConfigMap) *runs {
	t.Helper()
	client, err := kubernetes.NewForConfig(&rest.Config{QPS: -1, Transport: transport.Func(func(r *http.Request) (*http.Response, error) {
		var response any = metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Code: http.StatusNotFound,
			Reason: metav1.StatusReasonNotFound,
		}
		code := http.StatusNotFound
		all := &corev1.ConfigMapList{TypeMeta: metav1.TypeMeta{Kind: "ConfigMapList", APIVersion: "v1"}}
		for _, object := range objects {
			if object.Labels != nil {
				all.Items = append(all.Items, *object)
			}
			if path.Base(r.URL.Path) == object.Name {
				response, code = object, http.StatusOK
			}
		}
		switch path.Base(r.URL.Path) {
		case "configmaps":
			response, code = all, http.StatusOK
		case recordstore.KeySecret:
			response, code = &corev1.Secret{TypeMeta: metav1.TypeMeta{Kind: "Secret", APIVersion: "v1"}, Data: map[string][]byte{"key": fuzzKey()}},
				http.StatusOK
		case "leases":
			response, code = &coordinationv1.LeaseList{TypeMeta: metav1.TypeMeta{Kind: "LeaseList", APIVersion: "coordination.k8s.io/v1"}},
				http.StatusOK
		}
		return respond(r, response, code)
	})})
	if err != nil {
		t.Fatal(err)
	}
	return newRuns(client)
}

func aHead(header string, binary map[string][]byte) *corev1.ConfigMap {
	return sealed(fuzzKey(), &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: record.Namespace, Name: headName(fuzzID), UID: "uid", CreationTimestamp: metav1.NewTime(time.Unix(1, 0)),
			Labels: map[string]string{"preflight.openshift.io/record": fuzzID, "preflight.openshift.io/phase": "Running"},
		},
		Data: map[string]string{"format": "1", "run.yaml": header}, BinaryData: binary,
	}, fuzzID, "uid")
}

func aPart(n int, data []byte) *corev1.ConfigMap {
	return sealed(fuzzKey(), &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Namespace: record.Namespace, Name: partName(fuzzID, n)},
		BinaryData: map[string][]byte{"part.gz": data},
	}, fuzzID, "uid")
}

const header = "id: " + fuzzID + "\nphase: Running\nresultParts: 1\n"

// checkInvariants asserts the invariants of a record.
func checkInvariants(t *testing.T, got record.Record, err error) {
	t.Helper()
	if err != nil {
		return
	}
	if got.ID != fuzzID || got.StartTime.IsZero() {
		t.Errorf("record of run %q, begun at %s", got.ID, got.StartTime)
	}
	if got.Phase == record.Running && (got.Report != nil || got.Fingerprint != nil) {
		t.Errorf("a run in progress has a report: %+v", got)
	}
	if len(got.Results) > 20_000 {
		t.Errorf("read %d results", len(got.Results))
	}
	for i, result := range got.Results {
		if result.Check == "" || i > 0 && result.Check <= got.Results[i-1].Check {
			t.Errorf("result %d is of check %q", i, result.Check)
		}
	}
}

func FuzzHead(f *testing.F) {
	line := []byte(`{"check":"Etcd.Disk","findings":[]}` + "\n")
	f.Add(header, compressed(f, []byte("Etcd.Disk\nNetwork.Routes")), compressed(f, line), []byte(nil))
	f.Add("id: "+fuzzID+"\nphase: Complete\nstartTime: \"2026-01-01T00:00:00Z\"\n", []byte(nil), []byte(nil),
		compressed(f, []byte("{\"a\":\"b\"}\n{}")))
	f.Add("id: "+fuzzID+"\nphase: Complete\nreportParts: 1\n", []byte(nil), []byte(nil), []byte(nil))
	f.Add("id: 01234567-8900-0000-0000-000000000000\nphase: Complete\n", []byte(nil), []byte(nil), []byte(nil)) // the same prefix
	f.Add("a: &a [*a]\n", []byte("x"), []byte{0x1f, 0x8b}, []byte("y"))
	f.Fuzz(func(t *testing.T, header string, checks, results, report []byte) {
		store := canned(t, aHead(header, map[string][]byte{"checks.gz": checks, "results.gz": results, "report.gz": report}), aPart(1, results))
		got, err := store.Get(t.Context(), fuzzID)
		checkInvariants(t, got, err)
		if err == nil && got.Verified() != nil {
			t.Errorf("a sealed record is not authentic: %v", got.Verified())
		}
		listed, errListed := store.List(t.Context())
		if errListed != nil || len(listed) != 1 || listed[0].ID != fuzzID {
			t.Errorf("an unreadable run is not listed: %v, %v", listed, errListed)
		}
	})
}

func FuzzPart(f *testing.F) {
	line := []byte(`{"check":"Etcd.Disk","findings":[{"name":"Etcd.Disk","outcome":"Pass"}]}` + "\n")
	f.Add(compressed(f, line))
	f.Add(append(compressed(f, line), compressed(f, line)...))
	f.Add(compressed(f, []byte(`{"check":""}`)))
	f.Add(bomb(f, 9))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := canned(t, aHead(header, nil), aPart(1, data)).Get(t.Context(), fuzzID)
		checkInvariants(t, got, err)
		if err != nil {
			t.Errorf("unreadable results make the record unreadable: %v", err)
		}
	})
}

// Parts within their bounds may exceed the bound of the record.
func TestTotalBoundOfParts(t *testing.T) {
	t.Parallel()
	large := append([]byte(`{"check":"A","findings":[]`), bytes.Repeat([]byte(" "), 7<<20)...)
	packed := compressed(t, append(large, '}'))
	objects := []*corev1.ConfigMap{aHead("id: "+fuzzID+"\nphase: Running\nresultParts: 512\n", map[string][]byte{
		"results.gz": compressed(t, []byte(`{"check":"Last","findings":[]}`)),
	})}
	for n := range 512 {
		objects = append(objects, aPart(n+1, packed))
	}
	got, err := canned(t, objects...).Get(t.Context(), fuzzID)
	checkInvariants(t, got, err)
	if err != nil || len(got.Results) == 0 {
		t.Errorf("parts within the bound: %v", err)
	}
	if _, err := canned(t, aHead("id: "+fuzzID+"\nphase: Running\nresultParts: 513\n", nil)).Get(t.Context(), fuzzID); err == nil {
		t.Error("want an error for too many parts")
	}
}
