package scaffold_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/cmd/oc-preflight/scaffold"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/payload"
	"github.com/openshift/update-preflight/runner/site"
	"github.com/openshift/update-preflight/test/golden"
)

const siteImage = "registry.example.com/tools@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func newSite(t *testing.T, language scaffold.Language) scaffold.Scaffold {
	t.Helper()
	created, err := scaffold.NewSite(scaffold.SiteParameters{Name: "backup-done", Namespace: "site-checks", Image: siteImage, Language: language})
	if err != nil {
		t.Fatal(err)
	}
	return created
}

// siteDraft returns the checks of a directory as a run would draft them.
func siteDraft(t *testing.T, directory string) (jobplan.Draft, *payload.Release) {
	t.Helper()
	source, err := site.Directory(filepath.Join(directory, "checks"))
	if err != nil {
		t.Fatal(err)
	}
	read := site.NewChecks()
	read.Add(source, source.Files)
	for _, f := range read.Findings {
		if f.Outcome != preflight.Pass {
			t.Errorf("%s (%s): %s", f.Name, f.Reason, f.Message)
		}
	}
	return jobplan.New("", read.Release), read.Release
}

// A run accepts the manifest of each language.
func TestSiteManifest(t *testing.T) {
	for _, language := range scaffold.Languages() {
		t.Run(string(language), func(t *testing.T) {
			directory := t.TempDir()
			if err := newSite(t, language).Write(directory); err != nil {
				t.Fatal(err)
			}
			draft, _ := siteDraft(t, directory)
			if len(draft.Refused) > 0 || len(draft.Checks) != 1 {
				t.Fatalf("want one accepted check, got %+v, refused %v", draft.Checks, draft.Refused)
			}
			check := draft.Checks[0]
			if check.Name != "Site.BackupDone" || !check.Framed || check.Job.Namespace != "site-checks" {
				t.Errorf("want the framed check Site.BackupDone, got %+v", check)
			}
			steps, err := newSite(t, language).Steps("oc preflight")
			if err != nil || !strings.Contains(steps, "oc preflight run --to-latest --checks checks") {
				t.Errorf("%v, steps:\n%s", err, steps)
			}
		})
	}
}

// script runs the check of a scaffold with an interpreter, as the container does.
func runScript(t *testing.T, language scaffold.Language, from, to string) (preflight.Result, int) {
	t.Helper()
	directory := t.TempDir()
	if err := newSite(t, language).Write(directory); err != nil {
		t.Fatal(err)
	}
	_, release := siteDraft(t, directory)
	for _, supporting := range release.Supporting {
		if scripts, ok := supporting.Object.(*corev1.ConfigMap); ok {
			for name, content := range scripts.Data {
				if err := os.WriteFile(filepath.Join(directory, name), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	log := filepath.Join(directory, "termination-log")
	if err := os.WriteFile(log, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var args []string
	for _, arg := range release.Jobs[0].Job.Spec.Template.Spec.Containers[0].Command {
		args = append(args, strings.Replace(arg, "/check/", directory+"/", 1))
	}
	command := exec.CommandContext(t.Context(), args[0], args[1:]...)
	command.Env = append(os.Environ(), "PREFLIGHT_TERMINATION_LOG="+log, "PREFLIGHT_RUN_ID=5f0c", "PREFLIGHT_CURRENT_VERSION="+from, "PREFLIGHT_TARGET_VERSION="+to)
	output, err := command.CombinedOutput()
	if command.ProcessState == nil {
		t.Fatal(err)
	}
	message, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	result, err := preflight.ParseFrame(message)
	if err != nil {
		t.Fatalf("%v in %q; output: %s", err, message, output)
	}
	return result, command.ProcessState.ExitCode()
}

// The scripts report as the program in Go does.
func TestSiteScripts(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, from, to string
		want             preflight.Outcome
		message          string
	}{
		"Minor":     {"an update to the next minor version", "4.20.5", "4.21.3", preflight.Unknown, "not written yet"},
		"TwoDigits": {"numbers are compared, not texts: 4.9 is older than 4.10", "4.9.1", "4.10.0-rc.1", preflight.Unknown, "not written yet"},
		"Downgrade": {"an update to an older minor version", "4.21.3", "4.20.5", preflight.Fail, "4.20.5 would replace the newer 4.21.3"},
		"None":      {"without versions the check is inconclusive", "", "", preflight.Unknown, "want"},
		"Text":      {"text is not a version", "4.21.3", `$(echo "4.22.0")`, preflight.Unknown, "want"},
		"Words":     {"words with dots are not a version", "4.21.3", "a.b.c", preflight.Unknown, "want"},
	} {
		for _, language := range []scaffold.Language{scaffold.Shell, scaffold.Python} {
			t.Run(fmt.Sprintf("%s/%s", language, name), func(t *testing.T) {
				result, code := runScript(t, language, tc.from, tc.to)
				if len(result.Findings) != 1 || result.State != preflight.StateFinal || !result.Agrees(code) {
					t.Fatalf("%s: exit code %d, %+v; want one final finding that agrees", tc.reason, code, result)
				}
				got := result.Findings[0]
				if got.Name != "BackupDone" || got.Outcome != tc.want || !strings.Contains(got.Message, tc.message) {
					t.Errorf("%s: %+v, want %s with %q", tc.reason, got, tc.want, tc.message)
				}
			})
		}
	}
}

// The program in Go builds and passes its test.
func TestSiteProgram(t *testing.T) {
	o := newRepository(t, newSite(t, scaffold.Go))
	o.run(t, "go", "test", "-vet=all", "./...")
	if unformatted := o.run(t, "gofmt", "-l", "."); unformatted != "" {
		t.Errorf("not formatted: %s", unformatted)
	}
}

func TestSiteParameters(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		change func(*scaffold.SiteParameters)
		want   string
	}{
		"Name":      {"the rules for names are those of an operator", func(p *scaffold.SiteParameters) { p.Name = "Storage-Driver" }, `name "Storage-Driver"`},
		"Namespace": {"the namespace is one of Kubernetes", func(p *scaffold.SiteParameters) { p.Namespace = "a_b" }, `namespace "a_b"`},
		"Image":     {"the image is a pull spec", func(p *scaffold.SiteParameters) { p.Image = "a b" }, `image "a b"`},
		"Language":  {"the error lists the languages", func(p *scaffold.SiteParameters) { p.Language = "perl" }, `language "perl": want one of ["go" "sh" "python"]`},
	} {
		parameters := scaffold.SiteParameters{Name: "backup-done", Namespace: "site-checks", Language: scaffold.Shell}
		tc.change(&parameters)
		if _, err := scaffold.NewSite(parameters); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s (%s): %v, want %q", name, tc.reason, err, tc.want)
		}
	}
}

func TestSiteGolden(t *testing.T) {
	created := newSite(t, scaffold.Shell)
	got, _, _ := strings.Cut(string(created.Files[0].Content), "\n  preflight.sh: |\n")
	golden.Compare(t, "testdata/site-sh.yaml", got)
}
