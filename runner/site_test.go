package runner_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/openshift/update-preflight/collector/input"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/updateplan/graphsource"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/site"
	"github.com/openshift/update-preflight/test/release"
)

// siteManifest returns the manifest of a check of the site with that name and image.
func siteManifest(name, image string) string {
	return strings.NewReplacer("quorum", name, "quay.io/openshift/etcd:latest", image).Replace(checkManifest)
}

// image returns an image that a check of the site may run.
func (w world) image(t *testing.T) string {
	t.Helper()
	image, err := release.BuildImage(t.Context(), w.registry, "site", release.Image{})
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// siteDirectory returns a directory with one check of the site.
func (w world) siteDirectory(t *testing.T, name string) site.Source {
	t.Helper()
	directory := t.TempDir()
	if err := os.WriteFile(filepath.Join(directory, name+".yaml"), []byte(siteManifest(name, w.image(t))), 0o600); err != nil {
		t.Fatal(err)
	}
	source, err := site.Directory(directory)
	if err != nil {
		t.Fatal(err)
	}
	return source
}

// siteImage returns an image with manifests.
func (w world) siteImage(t *testing.T, manifests map[string]string) site.Source {
	t.Helper()
	files := map[string]release.File{}
	for name, text := range manifests {
		files["manifests/"+name] = release.File{Data: []byte(text)}
	}
	pullSpec, err := release.BuildImage(t.Context(), w.registry, "site-checks", release.Image{Files: files})
	if err != nil {
		t.Fatal(err)
	}
	source, err := site.Image(pullSpec)
	if err != nil {
		t.Fatal(err)
	}
	return source
}

// names returns the names of the checks that the target would run.
func (w world) names(t *testing.T) ([]string, runner.Listing) {
	t.Helper()
	listing, err := runner.Checks(t.Context(), w.cluster, w.target, w.options)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, check := range listing.Checks {
		names = append(names, check.Name)
	}
	return names, listing
}

func TestSiteChecksAreListed(t *testing.T) {
	w := newWorld(t, map[string]string{})
	w.options.Selection.Site = []site.Source{
		w.siteDirectory(t, "backup"),
		w.siteImage(t, map[string]string{"freeze.yaml": siteManifest("freeze", w.image(t))}),
	}
	names, listing := w.names(t)
	slices.Sort(names)
	if !slices.Equal(names, []string{check, "Site.Backup", "Site.Freeze"}) {
		t.Errorf("the checks %q", names)
	}
	digests := map[string]bool{}
	for _, f := range listing.Findings {
		if f.Name == site.NameSource {
			digests[f.Evidence["digest"]] = f.Outcome == preflight.Pass
		}
	}
	_, digest, _ := strings.Cut(w.options.Selection.Site[1].Name, "@")
	if !digests[digest] || !digests[w.options.Selection.Site[0].ID()] {
		t.Errorf("the report does not state which content was used: %v", digests)
	}
}

// The image policies of the cluster apply to an image of manifests, and to the images that
// its checks run.
func TestImagePoliciesApplyToSiteImages(t *testing.T) {
	key, public := newSigstoreKey(t)
	for name, tc := range map[string]struct {
		reason string
		// covered is the repository that the policy covers.
		covered string
		signed  bool
		outcome preflight.Outcome
		checks  []string
	}{
		"NotCovered": {
			reason: "no policy requires a signature", covered: "other", outcome: preflight.Pass,
			checks: []string{check, "Site.Freeze"},
		},
		"Signed": {
			reason: "the policy is satisfied", covered: "site-checks", signed: true, outcome: preflight.Pass,
			checks: []string{check, "Site.Freeze"},
		},
		"Unsigned": {
			reason: "an image that violates a policy is not used, and is inconclusive", covered: "site-checks",
			outcome: preflight.Unknown, checks: []string{check},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, map[string]string{})
			source := w.siteImage(t, map[string]string{"freeze.yaml": siteManifest("freeze", w.image(t))})
			repository := w.registry + "/openshift/"
			w.createPolicy(t, trusting(public, repository+tc.covered))
			if tc.signed {
				attach(t, key, source.Name, repository+tc.covered)
			}
			w.options.Selection.Site = []site.Source{source}
			names, listing := w.names(t)
			if !slices.Equal(names, tc.checks) {
				t.Errorf("%s: the checks %q, want %q", tc.reason, names, tc.checks)
			}
			if got := find(t, report.Report{Findings: listing.Findings}, site.NameSource); got.Outcome != tc.outcome {
				t.Errorf("%s: %s (%s) %s, want %s", tc.reason, got.Outcome, got.Reason, got.Message, tc.outcome)
			}
		})
	}
}

// A run whose checks of the site cannot be used is Undecided.
func TestBrokenSiteChecksAreUndecided(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		change func(*testing.T, *world)
		find   string
	}{
		"Collision": {reason: "the same Job as that of the release", find: "Site.Quorum", change: func(t *testing.T, w *world) {
			t.Helper()
			w.options.Selection.Site = []site.Source{w.siteDirectory(t, "quorum")}
		}},
		"Tag": {reason: "a check by tag", find: "Site.Freeze", change: func(t *testing.T, w *world) {
			t.Helper()
			w.options.Selection.Site = []site.Source{w.siteImage(t,
				map[string]string{"freeze.yaml": siteManifest("freeze", "quay.io/openshift/etcd:latest")})}
		}},
		"MissingImage": {reason: "no registry has the image", find: site.NameSource, change: func(t *testing.T, w *world) {
			t.Helper()
			source, err := site.Image(w.registry + "/openshift/site-checks@sha256:" + strings.Repeat("0", 64))
			if err != nil {
				t.Fatal(err)
			}
			w.options.Selection.Site = []site.Source{source}
		}},
		"NoManifests": {reason: "the image has no manifests", find: site.NameSource, change: func(t *testing.T, w *world) {
			t.Helper()
			w.options.Selection.Site = []site.Source{w.siteImage(t, map[string]string{"README": "x"})}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, map[string]string{})
			tc.change(t, &w)
			w.options.Judgement.Accept = accepting(check, "Images")
			w.options.Selection.Images = "off"
			decided := w.run(t)
			got := find(t, decided, tc.find)
			if got.Outcome != preflight.Unknown || got.Remediation == "" || decided.Verdict.Decision != verdict.Undecided ||
				!slices.Contains(decided.Verdict.Undecided, tc.find) {
				t.Errorf("%s: %+v, %+v; want Unknown with a remedy, and Undecided", tc.reason, got, decided.Verdict)
			}
		})
	}
}

func TestBadSiteInput(t *testing.T) {
	w := newWorld(t, map[string]string{})
	w.options.Selection.Site = []site.Source{{Name: w.registry + "/openshift/site-checks:v1"}}
	_, err := runner.Run(t.Context(), w.cluster, w.target, w.options)
	if _, ok := errors.AsType[*input.Error](err); !ok || !strings.Contains(err.Error(), "site-checks:v1") {
		t.Errorf("want bad input for a tag, got %v", err)
	}
}

// The results of a run with other checks of the site are not reused.
func TestSiteChecksAreInTheSelection(t *testing.T) {
	w := withJobs(t)
	node := newKubelet(t, w, 0)
	node.End()
	backup := w.siteDirectory(t, "backup")
	plain := w.run(t)
	w.options.Selection.Site = []site.Source{backup}
	first := w.run(t)
	if got := find(t, first, "Site.Backup"); got.Outcome != preflight.Pass || first.Run.ChecksFrom != "" {
		t.Errorf("a run without the checks of the site was reused: %+v, %+v", got, first.Run)
	}
	if again := w.run(t); again.Run.ChecksFrom != first.Run.ID {
		t.Errorf("the same checks were run again: %+v, want those of %s", again.Run, first.Run.ID)
	}
	w.options.Selection.Site = []site.Source{w.siteDirectory(t, "freeze")}
	if other := w.run(t); other.Run.ChecksFrom != "" {
		t.Errorf("a run with other checks of the site was reused: %+v", other.Run)
	}
	w.options.Selection.Site = nil
	if again := w.run(t); again.Run.ChecksFrom != plain.Run.ID {
		t.Errorf("the run without checks of the site was not reused: %+v, want %s", again.Run, plain.Run.ID)
	}
}

// A run is continued with the checks that it began with, without the directory.
func TestAttachKeepsSiteChecks(t *testing.T) {
	w := withJobs(t)
	node := newKubelet(t, w, 0)
	w.options.Selection.Site = []site.Source{
		w.siteDirectory(t, "backup"),
		w.siteImage(t, map[string]string{"freeze.yaml": siteManifest("freeze", w.image(t))}),
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	whenJobExists(t, w, cancel)
	w.options.Hooks.OnInterrupt = func(string) runner.Interruption { return runner.Detach }
	detached, err := runner.Run(ctx, w.cluster, w.target, w.options)
	if err != nil || detached.Run.Phase != report.PhaseInterrupted {
		t.Fatalf("phase %s, error %v", detached.Run.Phase, err)
	}
	w.options.Selection.Site = nil
	if _, err := runner.Run(t.Context(), w.cluster, w.target, w.options); err == nil {
		t.Error("a run with other checks of the site was joined")
	}
	node.End()
	decided, err := runner.Attach(t.Context(), w.cluster, detached.Run.ID, graphsource.Request{}, w.options)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{check, "Site.Backup", "Site.Freeze"} {
		if got := find(t, decided, name); got.Outcome != preflight.Pass {
			t.Errorf("%+v, want a pass", got)
		}
	}
	expectOnlyRecord(t, w, detached.Run.ID, record.Complete)
}
