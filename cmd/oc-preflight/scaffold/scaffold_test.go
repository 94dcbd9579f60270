package scaffold_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/cmd/oc-preflight/scaffold"
)

var updateGolden = flag.Bool("update", false, "rewrite the golden files")

// storageDriver is a check in a repository without image-references.
var storageDriver = scaffold.Parameters{
	Name: "storage-driver", Component: "cluster-foo-operator", Namespace: "openshift-foo-operator",
}

// references is an image-references that calls the image of a component so.
func references(component, image string) []byte {
	return []byte("kind: ImageStream\napiVersion: image.openshift.io/v1\nspec:\n  tags:\n" +
		"  - name: " + component + "\n    from:\n      kind: DockerImage\n      name: " + image + "\n")
}

// TestGolden shows all that is made.
func TestGolden(t *testing.T) {
	made := scaffolded(t, storageDriver)
	if *updateGolden {
		if err := os.RemoveAll("testdata/storage-driver"); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll("testdata/storage-driver", 0o750); err != nil {
			t.Fatal(err)
		}
		if err := made.Write("testdata/storage-driver"); err != nil {
			t.Fatal(err)
		}
	}
	want, got := read(t, "testdata/storage-driver"), map[string]string{}
	for _, file := range made.Files {
		got[file.Path] = string(file.Content)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what a check starts from changed (-want +got); if that is intended: go test -run Golden -update\n%s", diff)
	}
}

// TestSteps shows what is left to be done, with and without an entry to be
// added to image-references.
func TestSteps(t *testing.T) {
	unlisted := storageDriver
	unlisted.References = references("cluster-bar-operator", "quay.io/openshift/origin-cluster-bar-operator:latest")
	for name, tc := range map[string]struct {
		reason     string
		parameters scaffold.Parameters
	}{
		"steps":          {"image-references comes with the other files", storageDriver},
		"steps-unlisted": {"what the repository has is not ours to change", unlisted},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := scaffolded(t, tc.parameters).Steps("oc preflight")
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", name+".txt")
			if *updateGolden {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s (-want +got); if that is intended: go test -run Steps -update\n%s", tc.reason, diff)
			}
		})
	}
}

func TestNames(t *testing.T) {
	for given, tc := range map[string]struct {
		reason, check, directory string
	}{
		"storage-driver":  {"kebab case becomes camel case", "StorageDriver", "cmd/storage-driver-preflight"},
		"StorageDriver":   {"camel case becomes kebab case", "StorageDriver", "cmd/storage-driver-preflight"},
		"quorum":          {"one word", "Quorum", "cmd/quorum-preflight"},
		"HTTPProxyV2":     {"an acronym is one word, and stays as it was written", "HTTPProxyV2", "cmd/http-proxy-v2-preflight"},
		"http-proxy-v2":   {"which acronyms there are cannot be known", "HttpProxyV2", "cmd/http-proxy-v2-preflight"},
		"EtcdV3Health":    {"a digit ends a word", "EtcdV3Health", "cmd/etcd-v3-health-preflight"},
		"X":               {"a letter is a word", "X", "cmd/x-preflight"},
		"select":          {"a word of the language is no trouble", "Select", "cmd/select-preflight"},
		"preflight-start": {"only at the end it says nothing", "PreflightStart", "cmd/preflight-start-preflight"},
	} {
		t.Run(given, func(t *testing.T) {
			parameters := storageDriver
			parameters.Name = given
			made := scaffolded(t, parameters)
			if check := content(t, made, tc.directory+"/check.go"); !strings.Contains(check, `Name:        "`+tc.check+`"`) {
				t.Errorf("%s: the check is to be called %q:\n%s", tc.reason, tc.check, check)
			}
		})
	}
}

// TestRefused shows what is bad input, and what is said about it.
func TestRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		change func(*scaffold.Parameters)
		want   string
	}{
		"NoName": {
			"there is nothing to name it with", func(p *scaffold.Parameters) { p.Name = "" },
			`^the name "" is neither in kebab case, such as storage-driver, nor in camel case, such as StorageDriver$`,
		},
		"MixedName": {"what is meant cannot be known", func(p *scaffold.Parameters) { p.Name = "Storage-Driver" }, `^the name "Storage-Driver" is neither`},
		"SpaceName": {"a name is one word", func(p *scaffold.Parameters) { p.Name = "storage driver" }, `is neither`},
		"DashName":  {"a dash is between words", func(p *scaffold.Parameters) { p.Name = "storage-" }, `is neither`},
		"DigitName": {"a check's name begins with a letter", func(p *scaffold.Parameters) { p.Name = "3scale" }, `is neither`},
		"PathName":  {"a name leads out of no directory", func(p *scaffold.Parameters) { p.Name = "../../etc" }, `is neither`},
		"LineName":  {"an error is one line", func(p *scaffold.Parameters) { p.Name = "a\nb" }, `^the name "a\\nb" is neither`},
		"SaysPreflight": {
			"the directory would be storage-preflight-preflight", func(p *scaffold.Parameters) { p.Name = "StoragePreflight" },
			`^the name "StoragePreflight" need not say preflight: leave that out`,
		},
		"LongName": {
			"the name of the Job would be cut", func(p *scaffold.Parameters) { p.Name = strings.Repeat("x", 31) },
			`has 31 characters in kebab case, and 30 is the limit`,
		},
		"NoComponent":   {"the file's name says which component it is of", func(p *scaffold.Parameters) { p.Component = "" }, `^the component "" is not one to 63 lower-case letters`},
		"ComponentCase": {"tags of images have no capitals here", func(p *scaffold.Parameters) { p.Component = "Foo" }, `^the component "Foo" is not`},
		"ComponentUnderscore": {
			"an underscore ends the component in a file's name", func(p *scaffold.Parameters) { p.Component = "cluster_foo" }, `^the component "cluster_foo" is not`,
		},
		"NoNamespace":    {"a Job runs somewhere", func(p *scaffold.Parameters) { p.Namespace = "" }, `^manifest: namespace "": want at most 63 lower-case letters`},
		"BadNamespace":   {"Kubernetes would refuse it", func(p *scaffold.Parameters) { p.Namespace = "openshift_foo" }, `^manifest: namespace "openshift_foo": want`},
		"NotYAML":        {"what is there cannot be read", func(p *scaffold.Parameters) { p.References = []byte("{") }, `^read manifests/image-references: `},
		"TagWithoutFrom": {"the manifests have to call the image something", func(p *scaffold.Parameters) { p.References = references(p.Component, `""`) }, `the tag "cluster-foo-operator" does not say what the image is called$`},
		"NoImage":        {"it would break the manifest", func(p *scaffold.Parameters) { p.References = references(p.Component, `"a b"`) }, `the tag "cluster-foo-operator": could not parse reference: a b$`},
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

// TestReferences shows what is made of image-references that are there.
func TestReferences(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, component, image, want string
	}{
		"Listed":   {"the manifests have to call the image what image-references calls it", "cluster-foo-operator", "openshift/origin-foo:v4.0", "openshift/origin-foo:v4.0"},
		"Unlisted": {"an entry of another component says nothing", "cluster-bar-operator", "openshift/origin-bar", "quay.io/openshift/origin-cluster-foo-operator:latest"},
	} {
		t.Run(name, func(t *testing.T) {
			parameters := storageDriver
			parameters.References = references(tc.component, tc.image)
			made := scaffolded(t, parameters)
			for _, file := range made.Files {
				if file.Path == "manifests/image-references" {
					t.Errorf("%s: it is there and must not be made", file.Path)
				}
			}
			job := content(t, made, "manifests/0000_50_cluster-foo-operator_11_preflight-job.yaml")
			if !strings.Contains(job, "image: "+tc.want+"\n") {
				t.Errorf("%s: want the image %q in:\n%s", tc.reason, tc.want, job)
			}
		})
	}
}

// FuzzNew holds that whatever is taken stays in the repository and in the
// places of the templates that are meant for it.
func FuzzNew(f *testing.F) {
	f.Add("storage-driver", "cluster-foo-operator", "openshift-foo", []byte(nil))
	f.Add("HTTPProxy", "123", "null", references(`"123"`, "a/b:c"))
	f.Fuzz(func(t *testing.T, name, component, namespace string, images []byte) {
		parameters := scaffold.Parameters{Name: name, Component: component, Namespace: namespace, References: images}
		made, err := scaffold.New(parameters)
		if err != nil {
			return
		}
		plain := scaffolded(t, scaffold.Parameters{Name: "x", Component: "y", Namespace: "z", References: images})
		if len(made.Files) != len(plain.Files) {
			t.Errorf("want the files that others get, got %d of %d", len(made.Files), len(plain.Files))
		}
		for _, file := range made.Files {
			if !filepath.IsLocal(filepath.FromSlash(file.Path)) {
				t.Errorf("%q is not a path in the repository", file.Path)
			}
		}
		job := content(t, made, "manifests/0000_50_"+component+"_11_preflight-job.yaml")
		template := content(t, plain, "manifests/0000_50_y_11_preflight-job.yaml")
		if got, want := strings.Count(job, "\n"), strings.Count(template, "\n"); got != want {
			t.Errorf("want the %d lines of the template, got %d", want, got)
		}
	})
}

func scaffolded(t *testing.T, parameters scaffold.Parameters) scaffold.Scaffold {
	t.Helper()
	made, err := scaffold.New(parameters)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func content(t *testing.T, made scaffold.Scaffold, path string) string {
	t.Helper()
	for _, file := range made.Files {
		if file.Path == path {
			return string(file.Content)
		}
	}
	t.Fatalf("no file %q in %v", path, made.Files)
	return ""
}

// read is the content of all files below a directory, by path.
func read(t *testing.T, directory string) map[string]string {
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
