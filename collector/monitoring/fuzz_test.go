package monitoring_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/monitoring"
)

// FuzzResponse checks that any response is a result, or an error with a reason and
// a remedy, and never both.
func FuzzResponse(f *testing.F) {
	f.Add(uint(0), []byte(`{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"1"]}]}}`))
	f.Add(uint(0), []byte(`{"status":"success","data":{"resultType":"scalar","result":[1,"1"]}}`))
	f.Add(uint(0), []byte(
		`{"status":"success","data":{"alerts":[{"labels":{"alertname":"A"},"state":"firing","activeAt":"2026-11-21T00:00:00Z"}]}}`))
	f.Add(uint(303), []byte(`{"status":"error","errorType":"timeout","error":"x"}`))
	f.Add(uint(102), []byte(``))
	f.Fuzz(func(t *testing.T, code uint, body []byte) {
		status := 200 + int(code%800)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write(body)
		}))
		defer server.Close()
		client := monitoring.New(func(context.Context) (*rest.Config, error) { return &rest.Config{Host: server.URL}, nil },
			monitoring.DefaultTimeout)
		match, err := client.Query(t.Context(), "up")
		if err != nil && (match || reasonOf(err) == err.Error()) {
			t.Errorf("status %d, %q: %v, %v", status, body, match, err)
		}
		if alerts, err := client.Alerts(t.Context()); err != nil && (alerts != nil || reasonOf(err) == err.Error()) {
			t.Errorf("status %d, %q: %v, %v", status, body, alerts, err)
		}
	})
}
