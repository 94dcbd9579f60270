package checktest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/archive"
	"github.com/openshift/update-preflight/collector/archive/gathering"
	"github.com/openshift/update-preflight/collector/archive/writing"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/snapshot"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// notInArchive is the reason where an archive lacks what a check reads.
const notInArchive = "NotInArchive"

// archived fails the test where the check reports of an archive of the cluster what it does not
// report of the cluster: of an archive with all that the check reads, of the same one without the
// names of the cluster, and of one as must-gather makes it. A response that the test makes up is
// for one request, and an archive is made by others, so such a server has none.
func archived(t *testing.T, c check.Check, view View, subject check.Subject, live []finding.Finding) {
	t.Helper()
	if view.server.madeUp {
		return
	}
	defer view.requests.forget()
	whole, missing := gather(t, c, view, false)
	if whole == "" {
		return
	}
	got := runOn(t, c, whole, subject)
	if diff := cmp.Diff(live, got); diff != "" && (missing == 0 || !lacks(live, got)) {
		t.Errorf("%s of an archive of the cluster, which lacks %d; -cluster, +archive:\n%s", c.Name, missing, diff)
	}
	if missing == 0 {
		redacted, _ := gather(t, c, view, true)
		if redacted == "" {
			t.Errorf("%s: the nodes cannot be read, so no name can be replaced", c.Name)
			return
		}
		if diff := cmp.Diff(reasonsOf(live), reasonsOf(runOn(t, c, redacted, subject))); diff != "" {
			t.Errorf("%s of a redacted archive of the cluster; -cluster, +archive:\n%s", c.Name, diff)
		}
	}
	asMustGather(t, whole)
	if got := runOn(t, c, whole, subject); !lacks(live, got) {
		t.Errorf("%s of a must-gather of the cluster; -cluster, +archive:\n%s", c.Name, cmp.Diff(live, got))
	}
}

// gather makes an archive with what a check reads, and counts what could not be read; there is none
// for a user who may not read the ClusterVersion, and of a server without a version.
func gather(t *testing.T, c check.Check, view View, redact bool) (dir string, missing int) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "archive")
	into, err := writing.Create(dir, view.api.Now())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := into.Close(); err != nil {
			t.Error(err)
		}
	})
	request := gathering.Options{Reads: c.Reads, Redact: redact, Step: func(string) {}}
	summary, err := gathering.Gather(context.WithoutCancel(t.Context()), view.api, request, into)
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return "", 0
	}
	if err == nil {
		_, err = into.Commit()
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir, len(summary.Missing)
}

// runOn are the findings of a check about the cluster of an archive.
func runOn(t *testing.T, c check.Check, dir string, subject check.Subject) []finding.Finding {
	t.Helper()
	opened, err := archive.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	api, err := cluster.Connect(opened.Config(), "checktest")
	if err != nil {
		t.Fatal(err)
	}
	subject.Cluster = snapshot.Of(api)
	return collector.Collect(t.Context(), collector.Bind(subject, []check.Check{c}), func(collector.Source, []finding.Finding) {}).Findings
}

// lacks reports whether the findings for an archive equal the findings for the cluster except for details, or
// report that something is missing: then they contain no problem that the cluster does not have.
func lacks(live, got []finding.Finding) bool {
	if slices.ContainsFunc(got, func(f finding.Finding) bool { return f.Reason == notInArchive }) {
		return !slices.ContainsFunc(got, func(f finding.Finding) bool {
			return f.Outcome == preflight.Fail && !slices.ContainsFunc(live,
				func(known finding.Finding) bool { return known.Name == f.Name && known.Reason == f.Reason })
		})
	}
	passes := func(outcome preflight.Outcome) bool { return outcome == preflight.Pass }
	return cmp.Equal(slices.DeleteFunc(outcomesOf(live), passes), slices.DeleteFunc(outcomesOf(got), passes))
}

func reasonsOf(findings []finding.Finding) []string {
	var reasons []string
	for _, f := range findings {
		reasons = append(reasons, string(f.Outcome)+" "+f.Reason)
	}
	slices.Sort(reasons)
	return reasons
}

func outcomesOf(findings []finding.Finding) []preflight.Outcome {
	var outcomes []preflight.Outcome
	for _, f := range findings {
		outcomes = append(outcomes, f.Outcome)
	}
	slices.Sort(outcomes)
	return outcomes
}

// ungathered are the resources that must-gather does not gather, or of which it has some objects
// only (openshift/must-gather collection-scripts).
func ungathered() []string {
	return []string{
		"machineconfignodes", "validatingadmissionpolicies", "validatingadmissionpolicybindings", "upgradeconfigs", "certificatesigningrequests",
		"apiservices", "machinehealthchecks",
	}
}

// asMustGather turns the archive into what must-gather would have gathered.
func asMustGather(t *testing.T, dir string) {
	t.Helper()
	var remove []string
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		below := strings.Split(strings.TrimPrefix(path, dir+string(filepath.Separator)), string(filepath.Separator))
		base := strings.TrimSuffix(entry.Name(), ".yaml")
		users := len(below) == 2 && below[0] == "namespaces" && !check.OfCluster(base) && base != "default"
		if users || slices.Contains(ungathered(), base) {
			remove = append(remove, path)
		}
		return err
	})
	for _, path := range remove {
		err = errors.Join(err, os.RemoveAll(path))
	}
	const times = "2026-11-25 10:12:00.016988581 +0000 UTC m=+0.380233555\n2026-11-25 10:13:00.016988581 +0000 UTC m=+60.380233555\n"
	// the last one for clusters without a ClusterVersion
	files := map[string]string{"timestamp": times, "version": "openshift/must-gather\n4.19.0\n", "preflight-collection.json": "{}"}
	for name, content := range files {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
}
