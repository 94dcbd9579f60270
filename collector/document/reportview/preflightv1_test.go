package reportview_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/document/format"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/test/golden"
)

const preflightV1 = "preflight-v1-json"

// preflightResult is the format as openshift/enhancements#1930 declares it.
type preflightResult struct {
	Format          string `json:"format"`
	PreflightID     string `json:"preflightID"`
	TargetVersion   string `json:"targetVersion"`
	ExecutionStatus string `json:"executionStatus"`
	Risks           []struct {
		Name          string `json:"name"`
		Message       string `json:"message"`
		URL           string `json:"url"`
		TargetVersion string `json:"targetVersion"`
	} `json:"risks"`
}

// parsed is the result as its reader in the enhancement has it, who adds the prefix
// "Preflight=VERSION: " to the messages.
func parsed(t *testing.T, doc report.Report) (result preflightResult, texts map[string]string) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(encoded(t, preflightV1, doc)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&result); err != nil {
		t.Fatal(err)
	}
	texts = map[string]string{}
	name := regexp.MustCompile(`^[A-Z][A-Za-z0-9.-]*$`)
	for _, risk := range result.Risks {
		if strings.HasPrefix(risk.Message, "Preflight=") || risk.TargetVersion != doc.Target.Version || risk.Message == "" {
			t.Errorf("risk %s of the preflight of %s: %q", risk.Name, doc.Target.Version, risk.Message)
		}
		if link, err := url.Parse(risk.URL); err != nil || !link.IsAbs() {
			t.Errorf("risk %s has the URL %q", risk.Name, risk.URL)
		}
		if !name.MatchString(risk.Name) || len(risk.Name) > 256 {
			t.Errorf("%q is no name of a risk", risk.Name)
		}
		if _, double := texts[risk.Name]; double {
			t.Errorf("risk %s is listed twice", risk.Name)
		}
		texts[risk.Name] = risk.Message
	}
	return result, texts
}

func TestPreflightV1Golden(t *testing.T) {
	golden.Compare(t, "testdata/blocked.preflight-v1-json", encoded(t, preflightV1, blocked()))
}

// The findings that count are read back by the rule of the enhancement.
func TestPreflightV1RoundTrip(t *testing.T) {
	failing := func(findings ...finding.Finding) report.Report {
		doc := blocked()
		doc.Findings = findings
		return doc
	}
	colon := "Precondition: the image: is missing"
	for name, tc := range map[string]struct {
		reason string
		doc    report.Report
		want   map[string]string
	}{
		"Ready": {reason: "without findings that count there are no risks", doc: ready(), want: map[string]string{}},
		"Blocked": {
			reason: "failures and inconclusive findings count, and accepted ones do not", doc: blocked(),
			want: map[string]string{
				"AdminAck-ack-4.18-api-removals":            "Remove <v1beta1> & others.",
				"ClusterIngressOperator.DefaultCertificate": "the certificate in Secret openshift-ingress/router-certs has an RSA key of 1024 bits",
				"Etcd.Quorum": "the image cannot be pulled",
			},
		},
		"Forced": {
			reason: "what was forced is a risk for others", doc: forced(), want: map[string]string{"ReleaseSignature": "no signature"},
		},
		"Colon": {
			reason: "a message is verbatim", doc: failing(finding.Fail(finding.ReportedReason("R"), "%s", colon).Named("A")), want: map[string]string{"A": colon},
		},
		"SameName": {
			reason: "ClusterVersion has one risk of a name", doc: failing(finding.Fail(finding.ReportedReason("R"), "one").Named("A"), finding.Unknown(finding.ReportedReason("R"), "two").Named("A")),
			want: map[string]string{"A": "one; two"},
		},
		"NoMessage":   {reason: "a risk has a text", doc: failing(finding.Fail(finding.ReportedReason("Broken"), "").Named("A")), want: map[string]string{"A": "Broken"}},
		"InvalidName": {reason: "another name is derived", doc: failing(finding.Fail(finding.ReportedReason("R"), "x").Named("no name")), want: map[string]string{"InvalidName-no-name": "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			result, got := parsed(t, tc.doc)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if result.Format != preflightV1 || result.TargetVersion != "4.19.0" || result.PreflightID != "2026-11-21T08:00:00Z-preflight-4.19.0" {
				t.Errorf("%s: %+v", tc.reason, result)
			}
		})
	}
}

func TestPreflightV1ExecutionStatus(t *testing.T) {
	missing := blocked()
	missing.Expected.Reported--
	none := ready()
	none.Expected = verdict.Expectation{}
	for name, tc := range map[string]struct {
		reason string
		doc    report.Report
		want   string
	}{
		"Complete":    {"every check reported", blocked(), "completed"},
		"Current":     {"a stored verdict that holds", current(), "completed"},
		"Running":     {"the run is in progress", running(), "running"},
		"Interrupted": {"the run did not end", forced(), "failed"},
		"Canceled":    {"the run was canceled", canceled(), "failed"},
		"Missing":     {"a check did not report", missing, "failed"},
		"NoChecks":    {"a run without checks has no result", none, "failed"},
		"Outdated":    {"the verdict no longer holds", outdated(), "failed"},
	} {
		t.Run(name, func(t *testing.T) {
			if result, _ := parsed(t, tc.doc); result.ExecutionStatus != tc.want {
				t.Errorf("%s: %s, want %s", tc.reason, result.ExecutionStatus, tc.want)
			}
		})
	}
}

// ClusterVersion can have 500 risks; the last one counts the findings beyond.
func TestPreflightV1IsBounded(t *testing.T) {
	doc := blocked()
	doc.Findings = nil
	for i := range 700 {
		doc.Findings = append(doc.Findings, finding.Fail(finding.ReportedReason("R"), "%s", strings.Repeat("é", 20<<10)).Named(fmt.Sprintf("Check%d", i)))
	}
	result, texts := parsed(t, doc)
	if len(result.Risks) != 500 || texts["PreflightMoreFindings"] != "201 more findings count against the update" {
		t.Errorf("%d risks, and the last one is %q", len(result.Risks), texts["PreflightMoreFindings"])
	}
	for _, risk := range result.Risks {
		if len(risk.Message) > 2<<10 {
			t.Fatalf("risk %s has a message of %d bytes", risk.Name, len(risk.Message))
		}
	}
}

// A prefix without a version would be ignored by the reader of the enhancement.
func TestPreflightV1NeedsAVersion(t *testing.T) {
	for _, version := range []string{"", "4.19", "4.19.0: x"} {
		doc := blocked()
		doc.Target.Version = version
		var written bytes.Buffer
		err := format.Write(&written, preflightV1, shown(doc), format.Style{})
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", version)) || written.Len() > 0 {
			t.Errorf("version %q: %v\n%s", version, err, &written)
		}
	}
}
