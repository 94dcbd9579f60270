package scaffold

import "strings"

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
	// release new" replaces with the one of the release.
	Image string
	// Job is the name of the Job.
	Job string
	// Program is the directory of the program, Manifest the path of the manifest, both
	// as in File.Path.
	Program, Manifest string
	// Site is true for a check of a site instead of an operator. Language is that of the
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
