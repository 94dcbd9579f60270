package e2e_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/zoo"
)

// siteDirectory returns a new directory with the manifests of these checks, by name.
func siteDirectory(t *testing.T, animals map[string]animal) string {
	t.Helper()
	directory := t.TempDir()
	for name, animal := range animals {
		if animal.Image == "" {
			animal.Image = testCluster.Image(t, "zoo", "test/e2e/zoo")
		}
		text, err := yaml.Marshal(animal.Job(name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(directory, name+".yaml"), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return directory
}

func TestSiteChecks(t *testing.T) {
	publish(t, map[string]animal{"healthy": {Ending: "pass"}})
	for name, tc := range map[string]struct {
		reason  string
		animals map[string]animal
		code    int
		want    map[string]preflight.Outcome
		// decides are the checks that determine the verdict.
		decides []string
	}{
		"Pass": {
			reason: "both pass", animals: map[string]animal{"backup": {Ending: "pass"}}, code: 0,
			want: map[string]preflight.Outcome{"Zoo.Animal": preflight.Pass, "Site.Animal": preflight.Pass, "SiteChecks": preflight.Pass},
		},
		"Fail": {
			reason: "the check of the site blocks", animals: map[string]animal{"backup": {Ending: "fail"}}, code: 3,
			want:    map[string]preflight.Outcome{"Zoo.Animal": preflight.Pass, "Site.Animal": preflight.Fail},
			decides: []string{"Site.Animal"},
		},
		"Writes": {
			reason: "its account has no write access, so the check is inconclusive", animals: map[string]animal{"backup": {Ending: "write"}}, code: 4,
			want:    map[string]preflight.Outcome{"Zoo.Animal": preflight.Pass, "Site.Animal": preflight.Unknown, "ReadOnlyGuard": preflight.Pass},
			decides: []string{"Site.Animal"},
		},
		"Collision": {
			reason: "a Job of the release is never replaced", animals: map[string]animal{"healthy": {Ending: "pass"}}, code: 4,
			want:    map[string]preflight.Outcome{"Zoo.Animal": preflight.Pass, "Site.Healthy": preflight.Unknown},
			decides: []string{"Site.Healthy"},
		},
		"Tag": {
			reason: "an image with a tag is not run", animals: map[string]animal{"backup": {Ending: "pass", Image: local.Registry + "/openshift/zoo:latest"}}, code: 4,
			want:    map[string]preflight.Outcome{"Zoo.Animal": preflight.Pass, "Site.Backup": preflight.Unknown},
			decides: []string{"Site.Backup"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			result := runPreflight(t, tc.code, "--to", to, "--checks", siteDirectory(t, tc.animals))
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

// A detached run continues with the checks of the site, although their directory is gone.
// Its results are reused for the same checks only.
func TestSiteChecksOfDetachedRun(t *testing.T) {
	publish(t, map[string]animal{"healthy": {Ending: "pass"}})
	directory := siteDirectory(t, map[string]animal{"unhurried": {Ending: "slow"}})
	command := preflightCommand(t, "run", "--to", to, "--checks", directory, "--on-interrupt", "detach", "-o", "json")
	var stdout bytes.Buffer
	command.Stdout = &stdout
	stderr, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stderr)
	for lines.Scan() && !strings.Contains(lines.Text(), "Site.Unhurried: running") {
		t.Log(lines.Text())
	}
	if err := command.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
		t.Log(lines.Text())
	}
	_ = command.Wait() // the phase in the report is compared
	var detached report.Report
	if err := json.Unmarshal(stdout.Bytes(), &detached); err != nil || detached.Run.Phase != report.PhaseInterrupted {
		t.Fatalf("%v, phase %s", err, detached.Run.Phase)
	}

	moved := filepath.Join(t.TempDir(), "moved")
	if err := os.Rename(directory, moved); err != nil {
		t.Fatal(err)
	}
	got := call(t, "attach", detached.Run.ID, "--prometheus", monitoring, "-o", "json")
	var result report.Report
	if err := json.Unmarshal([]byte(got.Stdout), &result); err != nil || got.Code != 0 {
		t.Fatalf("%v, exit code %d\n%s", err, got.Code, got.Stderr)
	}
	if f := byName(result)["Site.Animal"]; result.Run.ID != detached.Run.ID || f.Outcome != preflight.Pass || result.Verdict.Decision != verdict.Ready {
		t.Errorf("the run continued as %s with %+v: %+v", result.Run.ID, f, result.Verdict)
	}

	for name, tc := range map[string]struct {
		reason string
		args   []string
		reused bool
	}{
		"Same":    {reason: "another directory with the same content", args: []string{"--checks", moved}, reused: true},
		"Other":   {reason: "other checks are another run", args: []string{"--checks", siteDirectory(t, map[string]animal{"other": {Ending: "pass"}})}},
		"Without": {reason: "a run without them is another run", args: nil},
	} {
		got := zoo.Run(t, testCluster.Command(t, append([]string{"run", "--to", to, "--prometheus", monitoring, "-o", "json"}, tc.args...)...))
		var again report.Report
		if err := json.Unmarshal([]byte(got.Stdout), &again); err != nil || got.Code != 0 {
			t.Fatalf("%s: %v, exit code %d\n%s", name, err, got.Code, got.Stderr)
		}
		if (again.Run.ChecksFrom == detached.Run.ID) != tc.reused {
			t.Errorf("%s: the results are of run %q, want reused %t", tc.reason, again.Run.ChecksFrom, tc.reused)
		}
	}
	testCluster.ExpectNothingLeft(t)
}

// The commands that read a release accept --checks, too.
func TestSiteChecksOfOtherCommands(t *testing.T) {
	publish(t, map[string]animal{"healthy": {Ending: "pass"}})
	directory := siteDirectory(t, map[string]animal{"backup": {Ending: "pass", Namespace: "openshift-quota"}})
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
		"Tag":     {reason: "an image with a tag", args: []string{"run", "--to", to, "--checks", local.Registry + "/openshift/zoo:latest"}, want: "not a pull spec by digest"},
		"Missing": {reason: "no such directory", args: []string{"run", "--to", to, "--checks", "./missing"}, want: "./missing"},
		"Empty":   {reason: "a directory without manifests", args: []string{"checks", "--to", to, "--checks", t.TempDir()}, want: "no file is a manifest"},
		"Auth":    {reason: "roles without a release", args: []string{"auth", "run", "--checks", directory}, want: "--checks requires --to"},
	} {
		if got := call(t, tc.args...); got.Code != 2 || !strings.Contains(errorLine(got.Stderr), tc.want) {
			t.Errorf("%s (%s): exit code %d, %q; want 2 and %q", name, tc.reason, got.Code, got.Stderr, tc.want)
		}
	}
	testCluster.ExpectNothingLeft(t)
}
