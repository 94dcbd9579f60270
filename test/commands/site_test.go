package commands_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/exit"
	"github.com/openshift/update-preflight/test/program"
)

// A check of the site decides as one of the release does, and never replaces it.
func TestSiteChecks(t *testing.T) {
	byDefault.use(t)
	publish(t, map[string]animal{"healthy": {Plain: true}})
	node := newKubelet(t, 0)
	node.Code = exitCode
	node.End()
	for name, tc := range map[string]struct {
		reason  string
		animals map[string]animal
		code    int
		want    map[string]preflight.Outcome
		// decides are the checks that determine the verdict.
		decides []string
	}{
		"Fail": {
			reason: "the check of the site blocks", animals: map[string]animal{"backup": {Ending: "fail", Plain: true}}, code: exit.Blocked,
			want:    map[string]preflight.Outcome{"Zoo.Healthy": preflight.Pass, "Site.Backup": preflight.Fail},
			decides: []string{"Site.Backup"},
		},
		"Collision": {
			reason: "a Job of the release is never replaced", animals: map[string]animal{"healthy": {Plain: true}}, code: exit.Undecided,
			want:    map[string]preflight.Outcome{"Zoo.Healthy": preflight.Pass, "Site.Healthy": preflight.Unknown},
			decides: []string{"Site.Healthy"},
		},
		"Tag": {
			reason:  "an image with a tag is not run",
			animals: map[string]animal{"backup": {Plain: true, Image: byDefault.Registry + "/openshift/zoo:latest"}}, code: exit.Undecided,
			want:    map[string]preflight.Outcome{"Zoo.Healthy": preflight.Pass, "Site.Backup": preflight.Unknown},
			decides: []string{"Site.Backup"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			result := runPreflight(t, tc.code, "--to", to, "--checks", testCluster.SiteDirectory(t, tc.animals))
			for name, want := range tc.want {
				if got := byName(result)[name]; got.Outcome != want {
					t.Errorf("%s: %s is %s (%s) %s, want %s", tc.reason, name, got.Outcome, got.Reason, got.Message, want)
				}
			}
			if got := slices.Concat(result.Verdict.Blocking, result.Verdict.Undecided); !slices.Equal(got, tc.decides) {
				t.Errorf("%s: the verdict is determined by %q, want %q", tc.reason, got, tc.decides)
			}
			if got := result.Actions; len(tc.decides) > 0 && !strings.Contains(got[0].Command, " --checks ") {
				t.Errorf("%s: %q would run the preflight without the checks of the site", tc.reason, got[0].Command)
			}
			testCluster.ExpectNothingLeft(t)
		})
	}
}

// exitCode returns 1 for the checks that fail.
func exitCode(pod *corev1.Pod) int32 {
	if slices.Contains(pod.Spec.Containers[0].Command, "fail") {
		return preflight.ExitFail
	}
	return 0
}

// A detached run continues with the checks of the site, although their directory is gone.
// Its results are reused for the same checks only.
func TestSiteChecksOfDetachedRun(t *testing.T) {
	byDefault.use(t)
	publish(t, map[string]animal{"healthy": {Plain: true}})
	node := newKubelet(t, 0)
	directory := testCluster.SiteDirectory(t, map[string]animal{"backup": {Plain: true}})
	run := start(t, "run", "--to", to, "--checks", directory, "--on-interrupt", "detach", "-o", "json")
	for range 2 {
		firstPod(t, node, run)
	}
	run.Interrupt()
	detached := reportOf(t, run.Wait())
	if detached.Run.Phase != report.PhaseInterrupted {
		t.Fatalf("phase %s, want %s", detached.Run.Phase, report.PhaseInterrupted)
	}
	if len(detached.Actions) != 1 || detached.Actions[0].Type != finding.ActionAttach {
		t.Fatalf("the actions after detaching are %+v, want only to attach", detached.Actions)
	}
	for _, f := range detached.Findings {
		if f.Reason == "Interrupted" && (len(f.Actions) != 1 || f.Actions[0].Command != detached.Actions[0].Command) {
			t.Errorf("%s continues, and its actions are %+v, want to attach", f.Name, f.Actions)
		}
	}
	node.End()

	moved := filepath.Join(t.TempDir(), "moved")
	if err := os.Rename(directory, moved); err != nil {
		t.Fatal(err)
	}
	got := pasted(t, detached.Actions[0].Command+" -o json")
	result := reportOf(t, got)
	if got.Code != exit.Ready {
		t.Fatalf("exit code %d\n%s", got.Code, got.Stderr)
	}
	if f := byName(result)["Site.Backup"]; result.Run.ID != detached.Run.ID || f.Outcome != preflight.Pass ||
		result.Verdict.Decision != verdict.Ready {
		t.Errorf("the run continued as %s with %+v: %+v", result.Run.ID, f, result.Verdict)
	}

	for name, tc := range map[string]struct {
		reason string
		args   []string
		reused bool
	}{
		"Same": {reason: "another directory with the same content", args: []string{"--checks", moved}, reused: true},
		"Other": {
			reason: "other checks are another run",
			args:   []string{"--checks", testCluster.SiteDirectory(t, map[string]animal{"other": {Plain: true}})},
		},
		"Without": {reason: "a run without them is another run", args: nil},
	} {
		got := program.Call(t, append([]string{"run", "--to", to, "--prometheus", testCluster.Monitoring, "-o", "json"}, tc.args...)...)
		again := reportOf(t, got)
		if got.Code != exit.Ready {
			t.Fatalf("%s: exit code %d\n%s", name, got.Code, got.Stderr)
		}
		if (again.Run.ChecksFrom == detached.Run.ID) != tc.reused {
			t.Errorf("%s: the results are of run %q, want reused %t", tc.reason, again.Run.ChecksFrom, tc.reused)
		}
	}
	testCluster.ExpectNothingLeft(t)
}

// The commands that read a release accept --checks, too.
func TestSiteChecksOfOtherCommands(t *testing.T) {
	byDefault.use(t)
	publish(t, map[string]animal{"healthy": {Plain: true}})
	directory := testCluster.SiteDirectory(t, map[string]animal{"backup": {Plain: true, Namespace: "openshift-quota"}})
	listed := call(t, "checks", "--to", to, "--checks", directory)
	if listed.Code != 0 || !strings.Contains(listed.Stdout, "Site.Backup") || !strings.Contains(listed.Stdout, "backup.yaml") {
		t.Errorf("checks: exit code %d\n%s%s", listed.Code, listed.Stdout, listed.Stderr)
	}
	roles := call(t, "auth", "run", "--to", to, "--checks", directory)
	if roles.Code != 0 || !strings.Contains(roles.Stdout, "namespace: openshift-quota") {
		t.Errorf("auth: exit code %d, no role in the namespace of the check\n%s%s", roles.Code, roles.Stdout, roles.Stderr)
	}
	for name, tc := range map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"Tag": {
			reason: "an image with a tag", args: []string{"run", "--to", to, "--checks", byDefault.Registry + "/openshift/zoo:latest"},
			want: "not a pull spec by digest",
		},
		"Missing": {reason: "no such directory", args: []string{"run", "--to", to, "--checks", "./missing"}, want: "./missing"},
		"Empty": {
			reason: "a directory without manifests", args: []string{"checks", "--to", to, "--checks", t.TempDir()},
			want: "no file is a manifest",
		},
		"Auth": {reason: "roles without a release", args: []string{"auth", "run", "--checks", directory}, want: "--checks requires --to"},
	} {
		if got := call(t, tc.args...); got.Code != exit.BadInput || !strings.Contains(errorLine(got.Stderr), tc.want) {
			t.Errorf("%s (%s): exit code %d, %q; want %d and %q", name, tc.reason, got.Code, got.Stderr, exit.BadInput, tc.want)
		}
	}
	testCluster.ExpectNothingLeft(t)
}
