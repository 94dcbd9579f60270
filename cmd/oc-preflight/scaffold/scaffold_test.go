package scaffold_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/cmd/oc-preflight/scaffold"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/payload"
	"github.com/openshift/update-preflight/runner/site"
	"github.com/openshift/update-preflight/test/golden"
)

// storageDriver are parameters for a repository without image-references.
var storageDriver = scaffold.Parameters{
	Name: "storage-driver", Component: "cluster-foo-operator", Namespace: "openshift-foo-operator",
}

// references returns image-references with one component and its image.
func references(component, image string) []byte {
	return []byte("kind: ImageStream\napiVersion: image.openshift.io/v1\nspec:\n  tags:\n" +
		"  - name: " + component + "\n    from:\n      kind: DockerImage\n      name: " + image + "\n")
}

// TestGolden compares all files with the golden files.
func TestGolden(t *testing.T) {
	created := newScaffold(t, storageDriver)
	if golden.Update() {
		if err := os.RemoveAll("testdata/storage-driver"); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll("testdata/storage-driver", 0o750); err != nil {
			t.Fatal(err)
		}
		if err := created.Write("testdata/storage-driver"); err != nil {
			t.Fatal(err)
		}
	}
	want, got := readAll(t, "testdata/storage-driver"), map[string]string{}
	for _, file := range created.Files {
		got[file.Path] = string(file.Content)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the files changed (-want +got); if this is intended, run go test -run Golden -update\n%s", diff)
	}
}

// TestSteps compares the remaining steps with the golden files, with and without an
// entry to add to image-references.
func TestSteps(t *testing.T) {
	unlisted := storageDriver
	unlisted.References = references("cluster-bar-operator", "quay.io/openshift/origin-cluster-bar-operator:latest")
	for name, tc := range map[string]struct {
		reason     string
		parameters scaffold.Parameters
	}{
		"steps":          {"image-references is one of the new files", storageDriver},
		"steps-unlisted": {"an existing image-references is not changed", unlisted},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := newScaffold(t, tc.parameters).Steps("oc preflight")
			if err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, "testdata/"+name+".txt", got)
		})
	}
}

func TestNames(t *testing.T) {
	for given, tc := range map[string]struct {
		reason, check, directory string
	}{
		"storage-driver":  {"kebab case is converted to camel case", "StorageDriver", "cmd/storage-driver-preflight"},
		"StorageDriver":   {"camel case is converted to kebab case", "StorageDriver", "cmd/storage-driver-preflight"},
		"quorum":          {"one word", "Quorum", "cmd/quorum-preflight"},
		"HTTPProxyV2":     {"an acronym is one word and is not changed", "HTTPProxyV2", "cmd/http-proxy-v2-preflight"},
		"http-proxy-v2":   {"acronyms in kebab case are not recognized", "HttpProxyV2", "cmd/http-proxy-v2-preflight"},
		"EtcdV3Health":    {"a digit ends a word", "EtcdV3Health", "cmd/etcd-v3-health-preflight"},
		"X":               {"a single letter is a word", "X", "cmd/x-preflight"},
		"select":          {"a keyword of Go is allowed", "Select", "cmd/select-preflight"},
		"preflight-start": {"preflight is allowed except at the end", "PreflightStart", "cmd/preflight-start-preflight"},
	} {
		t.Run(given, func(t *testing.T) {
			parameters := storageDriver
			parameters.Name = given
			created := newScaffold(t, parameters)
			if check := content(t, created, tc.directory+"/check.go"); !strings.Contains(check, `Name:        "`+tc.check+`"`) {
				t.Errorf("%s: want the name %q:\n%s", tc.reason, tc.check, check)
			}
		})
	}
}

// TestInvalid tests the error for each invalid parameter.
func TestInvalid(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		change func(*scaffold.Parameters)
		want   string
	}{
		"NoName": {
			"the name is required", func(p *scaffold.Parameters) { p.Name = "" },
			`^name "": want kebab case, such as storage-driver, or camel case, such as StorageDriver$`,
		},
		"MixedName": {
			"a mix of both cases is ambiguous", func(p *scaffold.Parameters) { p.Name = "Storage-Driver" },
			`^name "Storage-Driver": want kebab case`,
		},
		"SpaceName": {"a name has no spaces", func(p *scaffold.Parameters) { p.Name = "storage driver" }, `want kebab case`},
		"DashName":  {"a dash separates words", func(p *scaffold.Parameters) { p.Name = "storage-" }, `want kebab case`},
		"DigitName": {"the name of a check begins with a letter", func(p *scaffold.Parameters) { p.Name = "3scale" }, `want kebab case`},
		"PathName":  {"a name is not a path", func(p *scaffold.Parameters) { p.Name = "../../etc" }, `want kebab case`},
		"LineName":  {"an error has one line", func(p *scaffold.Parameters) { p.Name = "a\nb" }, `^name "a\\nb": want kebab case`},
		"EndsWithPreflight": {
			"the directory would be storage-preflight-preflight", func(p *scaffold.Parameters) { p.Name = "StoragePreflight" },
			`^name "StoragePreflight": want a name without preflight`,
		},
		"LongName": {
			"the name of the Job would be truncated", func(p *scaffold.Parameters) { p.Name = strings.Repeat("x", 31) },
			`: 31 characters in kebab case, want at most 30`,
		},
		"NoComponent": {
			"the file name of the manifest contains the component", func(p *scaffold.Parameters) { p.Component = "" },
			`^component "": want 1 to 63 lower-case letters`,
		},
		"ComponentCase": {
			"a component has no upper-case letters", func(p *scaffold.Parameters) { p.Component = "Foo" },
			`^component "Foo": want`,
		},
		"ComponentUnderscore": {
			"an underscore ends the component in a file name", func(p *scaffold.Parameters) { p.Component = "cluster_foo" },
			`^component "cluster_foo": want`,
		},
		"NoNamespace": {
			"the namespace is required", func(p *scaffold.Parameters) { p.Namespace = "" },
			`^manifest: namespace "": want at most 63 lower-case letters`,
		},
		"BadNamespace": {
			"the namespace is a DNS label", func(p *scaffold.Parameters) { p.Namespace = "openshift_foo" },
			`^manifest: namespace "openshift_foo": want`,
		},
		"NotYAML": {
			"image-references is YAML", func(p *scaffold.Parameters) { p.References = []byte("{") },
			`^read manifests/image-references: `,
		},
		"TagWithoutFrom": {
			"a tag has an image name", func(p *scaffold.Parameters) { p.References = references(p.Component, `""`) },
			`the tag "cluster-foo-operator" has no image name$`,
		},
		"InvalidImage": {
			"the image name is a pull spec", func(p *scaffold.Parameters) { p.References = references(p.Component, `"a b"`) },
			`the tag "cluster-foo-operator": could not parse reference: a b$`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			parameters := storageDriver
			tc.change(&parameters)
			_, err := scaffold.New(parameters)
			if err == nil || !regexp.MustCompile(tc.want).MatchString(err.Error()) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: want one line that matches %q, got: %v", tc.reason, tc.want, err)
			}
		})
	}
}

// TestReferences tests repositories that have image-references.
func TestReferences(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, component, image, want string
	}{
		"Listed": {
			"the manifest uses the image name in image-references", "cluster-foo-operator", "openshift/origin-foo:v4.0",
			"openshift/origin-foo:v4.0",
		},
		"Unlisted": {
			"an entry of another component is ignored", "cluster-bar-operator", "openshift/origin-bar",
			"quay.io/openshift/origin-cluster-foo-operator:latest",
		},
	} {
		t.Run(name, func(t *testing.T) {
			parameters := storageDriver
			parameters.References = references(tc.component, tc.image)
			created := newScaffold(t, parameters)
			for _, file := range created.Files {
				if file.Path == "manifests/image-references" {
					t.Errorf("%s: an existing file must not be among the new ones", file.Path)
				}
			}
			job := content(t, created, "manifests/0000_50_cluster-foo-operator_11_preflight-job.yaml")
			if !strings.Contains(job, "image: "+tc.want+"\n") {
				t.Errorf("%s: want the image %q in:\n%s", tc.reason, tc.want, job)
			}
		})
	}
}

// FuzzNew tests that valid parameters cannot change the structure of the files or
// create files outside of the repository.
func FuzzNew(f *testing.F) {
	f.Add("storage-driver", "cluster-foo-operator", "openshift-foo", []byte(nil))
	f.Add("HTTPProxy", "123", "null", references(`"123"`, "a/b:c"))
	f.Fuzz(func(t *testing.T, name, component, namespace string, images []byte) {
		parameters := scaffold.Parameters{Name: name, Component: component, Namespace: namespace, References: images}
		created, err := scaffold.New(parameters)
		if err != nil {
			return
		}
		plain := newScaffold(t, scaffold.Parameters{Name: "x", Component: "y", Namespace: "z", References: images})
		if len(created.Files) != len(plain.Files) {
			t.Errorf("want %d files, got %d", len(plain.Files), len(created.Files))
		}
		for _, file := range created.Files {
			if !filepath.IsLocal(filepath.FromSlash(file.Path)) {
				t.Errorf("%q is not a path in the repository", file.Path)
			}
		}
		job := content(t, created, "manifests/0000_50_"+component+"_11_preflight-job.yaml")
		template := content(t, plain, "manifests/0000_50_y_11_preflight-job.yaml")
		if got, want := strings.Count(job, "\n"), strings.Count(template, "\n"); got != want {
			t.Errorf("want %d lines as in the template, got %d", want, got)
		}
	})
}

func newScaffold(t *testing.T, parameters scaffold.Parameters) scaffold.Scaffold {
	t.Helper()
	created, err := scaffold.New(parameters)
	if err != nil {
		t.Fatal(err)
	}
	return created
}

func content(t *testing.T, created scaffold.Scaffold, path string) string {
	t.Helper()
	for _, file := range created.Files {
		if file.Path == path {
			return string(file.Content)
		}
	}
	t.Fatalf("no file %q in %v", path, created.Files)
	return ""
}

// readAll returns the content of all files below a directory, by path.
func readAll(t *testing.T, directory string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(directory, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(directory, path)
		files[filepath.ToSlash(relative)] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

const siteImage = "registry.example.com/tools@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func newSite(t *testing.T, language scaffold.Language) scaffold.Scaffold {
	t.Helper()
	created, err := scaffold.NewSite(scaffold.SiteParameters{
		Name: "backup-done", Namespace: "site-checks", Image: siteImage,
		Language: language,
	})
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
	command.Env = append(os.Environ(), "PREFLIGHT_TERMINATION_LOG="+log, "PREFLIGHT_RUN_ID=5f0c", "PREFLIGHT_CURRENT_VERSION="+from,
		"PREFLIGHT_TARGET_VERSION="+to)
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
		"Name": {
			"the rules for names are those of an operator", func(p *scaffold.SiteParameters) { p.Name = "Storage-Driver" },
			`name "Storage-Driver"`,
		},
		"Namespace": {"the namespace is one of Kubernetes", func(p *scaffold.SiteParameters) { p.Namespace = "a_b" }, `namespace "a_b"`},
		"Image":     {"the image is a pull spec", func(p *scaffold.SiteParameters) { p.Image = "a b" }, `image "a b"`},
		"Language": {
			"the error lists the languages", func(p *scaffold.SiteParameters) { p.Language = "perl" },
			`language "perl": want one of ["go" "sh" "python"]`,
		},
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
