// Package scaffold answers: what does a new check start from? It makes the
// files that an operator's repository needs to ship a preflight: a program, its
// check and test, a Dockerfile, the manifests, and what is left to be done.
//
// [New] is pure, and what it makes is complete: it builds, its test passes, and
// the runner takes its manifests. [References] reads what there is to know of a
// repository, and [Scaffold.Write] writes all files or none.
package scaffold

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"sigs.k8s.io/yaml"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// Parameters are what the files depend on. All but References are required.
type Parameters struct {
	// Name of the check, in kebab case (storage-driver) or camel case
	// (StorageDriver). It becomes the name of the check, which administrators
	// type, and of the Job.
	Name string
	// Component is the operator's name in the release, e.g.
	// cluster-foo-operator: the tag of its image in image-references.
	Component string
	// Namespace is where the Job runs. It must be there before the update.
	Namespace string
	// References is the content of manifests/image-references as it is in the
	// repository, empty where it has none.
	References []byte
}

// Scaffold is what a new check starts from.
type Scaffold struct {
	// Files are new, and sorted by path.
	Files []File

	about about
}

// File is a file of the operator's repository.
type File struct {
	// Path is relative to the root of the repository, with slashes.
	Path    string
	Content []byte
}

// about is what the templates are filled with.
type about struct {
	// Check is the name in camel case, Name the one in kebab case.
	Check, Name          string
	Component, Namespace string
	// Image is what the manifests call the operator's image, until
	// "oc adm release new" puts the one of the release there.
	Image string
	// Program is the directory of the program, Manifest the path of the
	// manifests, both as in File.Path.
	Program, Manifest string
	// Listed is true where image-references needs no new entry.
	Listed bool
	// Tool is how the user calls oc-preflight.
	Tool string
}

// New makes the files. The error says which parameter cannot be used, and why.
func New(p Parameters) (Scaffold, error) {
	check, name, err := names(p.Name)
	if err != nil {
		return Scaffold{}, err
	}
	if err := checkComponent(p.Component); err != nil {
		return Scaffold{}, err
	}
	image, listed, err := imageOf(p.References, p.Component)
	if err != nil {
		return Scaffold{}, err
	}
	about := about{
		Check: check, Name: name, Component: p.Component, Namespace: p.Namespace, Image: image,
		Program:  "cmd/" + name + "-preflight",
		Manifest: "manifests/0000_50_" + p.Component + "_11_preflight-job.yaml",
		Listed:   listed || len(p.References) == 0,
	}
	sources := map[string]string{
		about.Program + "/Dockerfile":    "Dockerfile",
		about.Program + "/check.go":      "check.go",
		about.Program + "/check_test.go": "check_test.go",
		about.Program + "/main.go":       "main.go",
	}
	if len(p.References) == 0 {
		sources[referencesFile] = "image-references"
	}
	return about.files(sources)
}

// Steps says what is left to be done, for people. tool is how they call
// oc-preflight.
func (s Scaffold) Steps(tool string) (string, error) {
	s.about.Tool = tool
	content, err := render("steps", s.about)
	return string(content), err
}

// files makes each file of the template that it is named with, and the
// manifests of what the check declares.
func (a about) files(sources map[string]string) (Scaffold, error) {
	manifests, err := a.manifests()
	if err != nil {
		return Scaffold{}, err
	}
	made := Scaffold{about: a, Files: []File{{Path: a.Manifest, Content: manifests}}}
	for path, source := range sources {
		content, err := render(source, a)
		if err != nil {
			return Scaffold{}, err
		}
		made.Files = append(made.Files, File{Path: path, Content: content})
	}
	slices.SortFunc(made.Files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return made, nil
}

// manifests are what the program prints with --print-manifest. They depend on
// nothing of the check but the rules, of which a new one has none.
func (a about) manifests() ([]byte, error) {
	options := preflight.ManifestOptions{Name: a.Name + "-preflight", Namespace: a.Namespace, Image: a.Image}
	return preflight.Manifest(options, preflight.Check{
		Name: a.Check,
		Run:  func(context.Context, *preflight.T) error { return nil },
	})
}

// The suffix keeps the Go tool away from what is Go only once it is filled.
//
//go:embed templates/*.tmpl
var templates embed.FS

func render(name string, about about) ([]byte, error) {
	file := name + ".tmpl"
	parsed, err := template.New(file).Funcs(template.FuncMap{"yaml": scalar}).ParseFS(templates, "templates/"+file)
	if err != nil {
		return nil, fmt.Errorf("template %q: %w", name, err)
	}
	var content bytes.Buffer
	if err := parsed.Execute(&content, about); err != nil {
		return nil, fmt.Errorf("template %q: %w", name, err)
	}
	return content.Bytes(), nil
}

// scalar is text as YAML has it: in quotes where it would not be read as text,
// such as 123 and null, which can be names in Kubernetes.
func scalar(text string) (string, error) {
	quoted, err := yaml.Marshal(text)
	return strings.TrimSpace(string(quoted)), err
}
