package reportview_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/document/format"
	"github.com/openshift/update-preflight/collector/document/planview"
	"github.com/openshift/update-preflight/collector/document/reportview"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/updateplan"
)

func TestReadReturnsWrittenReport(t *testing.T) {
	for name, doc := range map[string]report.Report{"blocked": blocked(), "ready": ready(), "forced": forced(), "running": running()} {
		for _, output := range []string{"json", "yaml"} {
			t.Run(name+"."+output, func(t *testing.T) {
				var written bytes.Buffer
				if err := format.Write(&written, output, shown(doc), format.Style{}); err != nil {
					t.Fatal(err)
				}
				got, err := report.Read(&written)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(doc, got); diff != "" {
					t.Errorf("the report has changed after writing and reading: -want +got:\n%s", diff)
				}
			})
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, doc := range []report.Report{blocked(), forced(), running()} {
		for _, output := range []string{"json", "yaml"} {
			var written bytes.Buffer
			if err := format.Write(&written, output, shown(doc), format.Style{}); err != nil {
				f.Fatal(err)
			}
			f.Add(written.Bytes())
		}
	}
	f.Add([]byte(
		"{\"apiVersion\":\"preflight.openshift.io/v1alpha1\",\"kind\":\"PreflightReport\",\"verdict\":{\"decision\":\"Ready\"},\"cluster\":{\"id\":\"\u007f\u0085\u009f\\ufeff\\uffff\u2028\"}}"))
	f.Fuzz(func(t *testing.T, stored []byte) {
		doc, err := report.Read(bytes.NewReader(stored))
		if err != nil {
			return
		}
		want := encoded(t, "json", doc)
		for _, output := range []string{"json", "yaml"} {
			text := encoded(t, output, doc)
			again, err := report.Read(bytes.NewReader(text))
			if err != nil {
				t.Fatalf("the report written as %s cannot be read: %v", output, err)
			}
			if diff := cmp.Diff(string(want), string(encoded(t, "json", again))); diff != "" {
				t.Errorf("the report has changed after writing as %s: -want +got:\n%s", output, diff)
			}
		}
		encoded(t, "text", doc) // does not panic
	})
}

func encoded(t *testing.T, output string, doc any) []byte {
	t.Helper()
	var written bytes.Buffer
	if err := format.Write(&written, output, shown(doc), format.Style{}); err != nil {
		t.Fatal(err)
	}
	return written.Bytes()
}

// shown is the document of a value.
func shown(value any) any {
	switch value := value.(type) {
	case report.Report:
		shown := reportview.Report{Report: value}
		if value.AfterUpdate != nil {
			shown.After = "oc preflight after " + value.Run.ID
		}
		return shown
	case report.Path:
		return reportview.Path{Path: value}
	case updateplan.Plan:
		return planview.Plan{Plan: value}
	case report.Targets:
		return reportview.Targets{Targets: value}
	}
	return value
}
