// Package schema answers: which form does a JSON document have?
//
// The schemas are generated from the Go types of the documents (JSON Schema 2020-12).
// They state what this version writes; a reader ignores fields that it does not know, so
// no schema forbids them.
package schema

import (
	"embed"
	"fmt"
	"io"
	"slices"
	"strings"
)

//go:embed *.json
var files embed.FS

// extension ends the name of a file with a schema.
const extension = ".json"

// Names are the documents that have a schema, sorted.
func Names() ([]string, error) {
	entries, err := files.ReadDir(".")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		names = append(names, strings.TrimSuffix(entry.Name(), extension))
	}
	return names, nil
}

// UnknownError is the error for a document without a schema.
type UnknownError struct {
	Name  string
	Names []string
}

// Error implements error.
func (e *UnknownError) Error() string {
	return fmt.Sprintf("no document is called %q: it must be one of %s", e.Name, strings.Join(e.Names, ", "))
}

// Write writes the schema of a document. A name without a schema is an UnknownError.
func Write(w io.Writer, name string) error {
	names, err := Names()
	if err != nil {
		return err
	}
	if !slices.Contains(names, name) {
		return &UnknownError{Name: name, Names: names}
	}
	text, err := files.ReadFile(name + extension)
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}
