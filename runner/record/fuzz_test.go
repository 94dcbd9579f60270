package record_test

import (
	"bytes"
	"encoding/json"
	"io"
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
)

const fuzzID = "01234567-89ab-4cde-8f01-23456789abcd"

// canned answers for a Kubernetes that has these ConfigMaps and nothing else.
func canned(t *testing.T, objects ...*corev1.ConfigMap) *record.Store {
	t.Helper()
	client, err := kubernetes.NewForConfig(&rest.Config{QPS: -1, Transport: tripper(func(r *http.Request) (*http.Response, error) {
		var answer any = metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound}
		code := http.StatusNotFound
		all := &corev1.ConfigMapList{TypeMeta: metav1.TypeMeta{Kind: "ConfigMapList", APIVersion: "v1"}}
		for _, object := range objects {
			if object.Labels != nil {
				all.Items = append(all.Items, *object)
			}
			if path.Base(r.URL.Path) == object.Name {
				answer, code = object, http.StatusOK
			}
		}
		switch path.Base(r.URL.Path) {
		case "configmaps":
			answer, code = all, http.StatusOK
		case "leases":
			answer, code = &coordinationv1.LeaseList{TypeMeta: metav1.TypeMeta{Kind: "LeaseList", APIVersion: "coordination.k8s.io/v1"}}, http.StatusOK
		}
		body, err := json.Marshal(answer)
		return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)), Request: r}, err
	})})
	if err != nil {
		t.Fatal(err)
	}
	return record.New(client)
}

func aHead(header string, binary map[string][]byte) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: record.Namespace, Name: headName(fuzzID), UID: "uid", CreationTimestamp: metav1.NewTime(time.Unix(1, 0)),
			Labels: map[string]string{"preflight.openshift.io/record": fuzzID, "preflight.openshift.io/phase": "Running"},
		},
		Data: map[string]string{"format": "1", "run.yaml": header}, BinaryData: binary,
	}
}

func aPart(n int, data []byte) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Namespace: record.Namespace, Name: partName(fuzzID, n)},
		BinaryData: map[string][]byte{"part.gz": data},
	}
}

const header = "id: " + fuzzID + "\nphase: Running\nresultParts: 1\n"

// soundly is what must hold of whatever was read.
func soundly(t *testing.T, got record.Record, err error) {
	t.Helper()
	if err != nil {
		return
	}
	if got.ID != fuzzID || got.StartTime.IsZero() {
		t.Errorf("read a record of run %q, begun at %s", got.ID, got.StartTime)
	}
	if got.Phase == record.Running && (got.Report != nil || got.Fingerprint != nil) {
		t.Errorf("a run that goes on has a report: %+v", got)
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
	f.Add("id: "+fuzzID+"\nphase: Complete\nstartTime: \"2026-01-01T00:00:00Z\"\n", []byte(nil), []byte(nil), compressed(f, []byte("{\"a\":\"b\"}\n{}")))
	f.Add("id: "+fuzzID+"\nphase: Complete\nreportParts: 1\n", []byte(nil), []byte(nil), []byte(nil))
	f.Add("id: 01234567-8900-0000-0000-000000000000\nphase: Complete\n", []byte(nil), []byte(nil), []byte(nil)) // begins alike
	f.Add("a: &a [*a]\n", []byte("x"), []byte{0x1f, 0x8b}, []byte("y"))
	f.Fuzz(func(t *testing.T, header string, checks, results, report []byte) {
		store := canned(t, aHead(header, map[string][]byte{"checks.gz": checks, "results.gz": results, "report.gz": report}), aPart(1, results))
		got, err := store.Get(t.Context(), fuzzID)
		soundly(t, got, err)
		listed, errListed := store.List(t.Context())
		if errListed != nil || len(listed) != 1 || listed[0].ID != fuzzID {
			t.Errorf("what cannot be read is not listed: %v, %v", listed, errListed)
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
		soundly(t, got, err)
		if err != nil {
			t.Errorf("results that cannot be read are not in, but the record cannot be read: %v", err)
		}
	})
}

// Many parts, each within its bounds, are not within theirs.
func TestPartsThatAreTooMuchTogether(t *testing.T) {
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
	soundly(t, got, err)
	if err != nil || len(got.Results) == 0 {
		t.Errorf("what is within the bounds is read: %v", err)
	}
	if _, err := canned(t, aHead("id: "+fuzzID+"\nphase: Running\nresultParts: 513\n", nil)).Get(t.Context(), fuzzID); err == nil {
		t.Error("there is a bound for the number of parts")
	}
}
