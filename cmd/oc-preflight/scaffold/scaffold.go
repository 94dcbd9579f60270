// Package scaffold answers: which files does the repository of an operator need to
// ship a new check? It creates a program with a check and its test, a Dockerfile, the
// manifest, and the list of remaining steps. [NewSite] creates the files of a check of a site,
// also in sh and Python.
//
// [New] is pure. Its files are complete: the program builds, its test passes, and the
// runner accepts its manifest. [References] reads image-references of a repository,
// and [Scaffold.Write] writes either all files or none.
package scaffold

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/preflight-sdk/python"
	"github.com/openshift/update-preflight/preflight-sdk/sh"
)

// Parameters are the input of [New]. All fields except References are required.
type Parameters struct {
	// Name is the name of the check, in kebab case (storage-driver) or camel case
	// (StorageDriver). It determines the name of the check, which administrators type,
	// and the name of the Job.
	Name string
	// Component is the name of the operator in the release, e.g. cluster-foo-operator:
	// the tag of its image in image-references.
	Component string
	// Namespace is the namespace of the Job. It must exist before the update.
	Namespace string
	// References is the content of manifests/image-references in the repository; empty
	// if the file does not exist.
	References []byte
}

// Scaffold is the set of files for a new check.
type Scaffold struct {
	// Files are the files to create, sorted by path.
	Files []File

	about about
}

// File is a file in the repository of the operator.
type File struct {
	// Path is relative to the root of the repository and has slashes.
	Path    string
	Content []byte
}

// New returns the files for a new check. The error names the invalid parameter.
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
		Check: check, Name: name, Job: name + "-preflight", Language: Go, Component: p.Component, Namespace: p.Namespace, Image: image,
		Program:  "cmd/" + name + "-preflight",
		Manifest: "manifests/0000_50_" + p.Component + "_11_preflight-job.yaml",
		Listed:   listed || len(p.References) == 0,
	}
	sources := about.program()
	if len(p.References) == 0 {
		sources[referencesFile] = "image-references"
	}
	return about.files(sources)
}

// program maps the files of the program to their templates.
func (a about) program() map[string]string {
	return map[string]string{
		a.Program + "/Dockerfile":    "Dockerfile",
		a.Program + "/check.go":      "check.go",
		a.Program + "/check_test.go": "check_test.go",
		a.Program + "/main.go":       "main.go",
	}
}

// Steps returns the remaining steps as text. tool is the command line by which the
// user calls oc-preflight.
func (s Scaffold) Steps(tool string) (string, error) {
	s.about.Tool = tool
	source := "steps"
	if s.about.Site {
		source = "site-steps"
	}
	content, err := render(source, s.about)
	return string(content), err
}

// files renders each file from the template that sources maps it to, and adds the
// manifest.
func (a about) files(sources map[string]string) (Scaffold, error) {
	manifest, err := a.manifest()
	if err != nil {
		return Scaffold{}, err
	}
	created := Scaffold{about: a, Files: []File{{Path: a.Manifest, Content: manifest}}}
	for path, source := range sources {
		content, err := render(source, a)
		if err != nil {
			return Scaffold{}, err
		}
		created.Files = append(created.Files, File{Path: path, Content: content})
	}
	slices.SortFunc(created.Files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return created, nil
}

// manifest returns what the program prints with --print-manifest. It depends only on
// the options and the rules of the check, and a new check has no rules.
func (a about) manifest() ([]byte, error) {
	options := preflight.ManifestOptions{Name: a.Job, Namespace: a.Namespace, Image: a.Image}
	return preflight.Manifest(options, preflight.Check{
		Name: a.Check,
		Run:  func(context.Context, *preflight.T) error { return nil },
	})
}

// Language is the language of a check.
type Language string

// The languages of checks.
const (
	Go     Language = "go"
	Shell  Language = "sh"
	Python Language = "python"
)

// Languages are all languages.
func Languages() []Language { return []Language{Go, Shell, Python} }

// about is the input of the templates.
type about struct {
	// Check is the name of the check in camel case, Name the one in kebab case.
	Check, Name          string
	Component, Namespace string
	// Image is the pull spec of the operator's image in the manifests, which "oc adm
	// release new" replaces with the tag of the release.
	Image string
	// Job is the name of the Job.
	Job string
	// Program is the directory of the program, Manifest the path of the manifest, both
	// as in File.Path.
	Program, Manifest string
	// Site is true for a check of a site instead of an operator. Language is the language of the
	// check; a check without a program of its own has Script and Library.
	Site            bool
	Language        Language
	Script, Library string
	// Listed is true if image-references needs no new entry.
	Listed bool
	// Tool is the command line by which the user calls oc-preflight.
	Tool string
}

// Function is the name of the check in sh and Python.
func (a about) Function() string { return strings.ReplaceAll(a.Name, "-", "_") + "_check" }

const (
	// maxName leaves room for "-preflight" in the 40 characters to which the SDK limits
	// the name of a Job (preflight-sdk/manifest.go).
	maxName = 30
	// maxComponent is the limit of a label value, because the component becomes one.
	maxComponent = validation.LabelValueMaxLength
)

var (
	kebabPattern     = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)
	camelPattern     = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
	componentPattern = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	wordEnd          = regexp.MustCompile(`([a-z0-9])([A-Z])`)
	acronymEnd       = regexp.MustCompile(`([A-Z])([A-Z][a-z])`)
)

// names returns the name of a check in camel case and in kebab case. A name in camel
// case is not changed, because only the author knows its acronyms.
func names(name string) (camel, kebab string, err error) {
	switch {
	case kebabPattern.MatchString(name):
		kebab = name
		for word := range strings.SplitSeq(name, "-") {
			camel += strings.ToUpper(word[:1]) + word[1:]
		}
	case camelPattern.MatchString(name):
		camel, kebab = name, kebabCase(name)
	default:
		return "", "", fmt.Errorf("name %q: want kebab case, such as storage-driver, or camel case, such as StorageDriver", name)
	}
	if kebab == "preflight" || strings.HasSuffix(kebab, "-preflight") {
		return "", "", fmt.Errorf("name %q: want a name without preflight, such as storage-driver", name)
	}
	if len(kebab) > maxName {
		return "", "", fmt.Errorf("name %q: %d characters in kebab case, want at most %d, because it becomes part of the names of Jobs", name,
			len(kebab), maxName)
	}
	return camel, kebab, nil
}

// kebabCase separates the words by dashes: HTTPProxyV2 becomes http-proxy-v2.
func kebabCase(camel string) string {
	dashed := wordEnd.ReplaceAllString(camel, "$1-$2")
	dashed = acronymEnd.ReplaceAllString(dashed, "$1-$2")
	return strings.ToLower(dashed)
}

// checkComponent applies the rule for components in the file names of manifests
// (cluster-version-operator docs/dev/operators.md), and the rules for labels and for
// names of images.
func checkComponent(component string) error {
	if len(component) > maxComponent || !componentPattern.MatchString(component) {
		return fmt.Errorf("component %q: want 1 to %d lower-case letters and digits, separated by single dashes, such as cluster-foo-operator",
			component, maxComponent)
	}
	return nil
}

// The suffix hides the templates from the Go tool. Those in part are inserted where
// another one has {{Intro}} or {{Unlisted}}.
//
//go:embed templates
var templates embed.FS

// placeholder is a name in a template. Templates are not of text/template, which
// calls methods by name: with it, the linker keeps the methods of every type, a third of
// the binary.
var placeholder = regexp.MustCompile(`{{[A-Za-z]+}}`)

// render returns the template with the values of about. A placeholder without a value is
// an error.
func render(name string, about about) ([]byte, error) {
	values, err := about.values(name)
	if err != nil {
		return nil, fmt.Errorf("template %q: %w", name, err)
	}
	text, err := substitute(name, values)
	if err != nil {
		return nil, fmt.Errorf("template %q: %w", name, err)
	}
	return []byte(text), nil
}

// substitute returns a template with its placeholders replaced.
func substitute(name string, values map[string]string) (string, error) {
	text, err := templates.ReadFile(path.Join("templates", name+".tmpl"))
	if err != nil {
		return "", err
	}
	var missing error
	result := placeholder.ReplaceAllStringFunc(string(text), func(found string) string {
		value, ok := values[strings.Trim(found, "{}")]
		if !ok {
			missing = fmt.Errorf("no value for %s", found)
		}
		return value
	})
	return result, missing
}

// values maps the placeholders of a template to what replaces them.
func (a about) values(name string) (map[string]string, error) {
	values := map[string]string{
		"Check": a.Check, "Component": a.Component, "Function": a.Function(), "Image": a.Image, "Job": a.Job, "Manifest": a.Manifest,
		"Name": a.Name, "Namespace": a.Namespace, "Program": a.Program, "Tool": a.Tool,
		"Command": `["/bin/sh", "/check/check.sh"]`, "Extension": "sh",
		"Shipped": " that the release ships", "Writer": a.Component,
		"ScriptBlock": literal(a.Script), "LibraryBlock": literal(a.Library),
	}
	if a.Language == Python {
		values["Command"], values["Extension"] = `["python3", "-B", "/check/check.py"]`, "py"
	}
	if a.Site {
		values["Shipped"], values["Writer"] = "", "release"
	}
	var err error
	for key, text := range map[string]string{"ComponentScalar": a.Component, "NamespaceScalar": a.Namespace} {
		if values[key], err = scalar(text); err != nil {
			return nil, err
		}
	}
	for key, part := range map[string]string{"Intro": a.intro(name), "Unlisted": a.unlisted()} {
		if part == "" {
			values[key] = ""
		} else if values[key], err = substitute(path.Join("part", part), values); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// intro is the part at the start of a template; empty if it has none.
func (a about) intro(name string) string {
	owner := "operator"
	if a.Site {
		owner = "site"
	}
	switch name {
	case "Dockerfile", "check.go", "main.go":
		return name + "." + owner
	case "site-steps":
		return name + "." + string(a.Language)
	}
	return ""
}

// unlisted is the part about an image that image-references does not list; empty if it
// does.
func (a about) unlisted() string {
	if a.Listed {
		return ""
	}
	return "steps.unlisted"
}

// scalar returns text as a YAML string. It is quoted if a parser would read another
// type, such as 123 and null, which are valid names in Kubernetes.
func scalar(text string) (string, error) {
	quoted, err := yaml.Marshal(text)
	return strings.TrimSpace(string(quoted)), err
}

// literal returns text as a literal block of YAML below a key that is indented by two.
func literal(text string) string {
	var indented strings.Builder
	indented.WriteString("|\n")
	for line := range strings.Lines(text) {
		if line != "\n" {
			indented.WriteString("    ")
		}
		indented.WriteString(line)
	}
	return strings.TrimSuffix(indented.String(), "\n")
}

// SiteParameters are the input of [NewSite].
type SiteParameters struct {
	// Name names the check, by the rules of Parameters.Name.
	Name string
	// Namespace is the namespace of the Job. It must exist before the update.
	Namespace string
	// Image runs the check: one with the program, or with an interpreter. Empty means a
	// name to replace.
	Image string
	// Language is the language in which the check is written.
	Language Language
}

// NewSite returns the files for a new check of a site. A check in sh or Python is one
// manifest, with the script in a ConfigMap. The error names the invalid parameter.
func NewSite(p SiteParameters) (Scaffold, error) {
	check, name, err := names(p.Name)
	if err != nil {
		return Scaffold{}, err
	}
	if err := p.validate(); err != nil {
		return Scaffold{}, err
	}
	about := about{
		Check: check, Name: name, Job: name, Namespace: p.Namespace, Image: cmp.Or(p.Image, "registry.example.com/site/"+name+":latest"),
		Program: "cmd/" + name + "-preflight", Manifest: "checks/" + name + ".yaml", Listed: true, Site: true, Language: p.Language,
	}
	if p.Language == Go {
		return about.files(about.program())
	}
	return about.script()
}

func (p SiteParameters) validate() error {
	if messages := validation.IsDNS1123Label(p.Namespace); len(messages) > 0 {
		return fmt.Errorf("namespace %q: %s", p.Namespace, messages[0])
	}
	if _, err := name.ParseReference(p.Image); err != nil && p.Image != "" {
		return fmt.Errorf("image %q: %w", p.Image, err)
	}
	if !slices.Contains(Languages(), p.Language) {
		return fmt.Errorf("language %q: want one of %q", p.Language, Languages())
	}
	return nil
}

// script is the manifest of a check in sh or Python.
func (a about) script() (Scaffold, error) {
	source := "check.sh"
	a.Library = sh.Library()
	if a.Language == Python {
		source, a.Library = "check.py", python.Library()
	}
	script, err := render(source, a)
	if err != nil {
		return Scaffold{}, err
	}
	a.Script = string(script)
	manifest, err := render("script.yaml", a)
	if err != nil {
		return Scaffold{}, err
	}
	return Scaffold{about: a, Files: []File{{Path: a.Manifest, Content: manifest}}}, nil
}
