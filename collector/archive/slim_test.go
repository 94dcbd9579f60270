package archive_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// managed is a list with an object that two clients have written.
func managed(version, kind string) string {
	const fields = `{"f:spec":{"f:jobTemplate":{"a\"]}":{}}}}`
	return fmt.Sprintf("apiVersion: %s\nitems:\n- {\"apiVersion\":%q,\"kind\":%q,\"metadata\":{\"name\":\"x\",\"namespace\":\"ns\",\"managedFields\":[{\"manager\":\"one\",\"fieldsV1\":%s,\"apiVersion\":%q},"+
		"{\"fieldsV1\":%s,\"manager\":\"two\"}],\"uid\":\"u\"},\"data\":{\"fieldsV1\":\"v\"}}\nkind: %sList\nmetadata:\n  resourceVersion: \"9\"\n", version, version, kind, fields, version, fields, kind)
}

// TestWriters holds that which fields were written is served of CronJobs only, of which it is read, and
// everything else of all.
func TestWriters(t *testing.T) {
	dir := write(t, files(map[string]string{"namespaces/ns/apps/deployments.yaml": managed("apps/v1", "Deployment"), "namespaces/ns/batch/cronjobs.yaml": managed("batch/v1", "CronJob")}))
	opened, _ := open(t, dir)
	for path, want := range map[string]struct {
		fields int
		reason string
	}{
		"/apis/apps/v1/namespaces/ns/deployments": {0, "most of what clients would decode"},
		"/apis/batch/v1/namespaces/ns/cronjobs":   {2, "when the template of its Jobs was changed"},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://archive.invalid"+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := opened.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		if err := response.Body.Close(); err != nil {
			t.Error(err)
		}
		text := string(body)
		if got := strings.Count(text, "f:jobTemplate"); err != nil || got != want.fields {
			t.Errorf("%s: %d sets of fields, %v, want %d: %s\n%s", path, got, err, want.fields, want.reason, text)
		}
		for _, kept := range []string{`"manager":"one"`, `"manager":"two"`, `"uid":"u"`, `"data":{"fieldsV1":"v"}`} {
			if !strings.Contains(text, kept) {
				t.Errorf("%s lacks %s: %s", path, kept, text)
			}
		}
	}
}
