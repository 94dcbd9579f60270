package gathering

import (
	"fmt"

	"github.com/openshift/update-preflight/collector/archive/layout"
)

// lists writes the objects of one list: cluster-scoped ones to a file each, and others to a list
// for each namespace.
type lists struct {
	source

	output *output
	// open is the namespace of the file which is open; empty where none is.
	open string
	// ended are the namespaces whose lists are written. The API server sorts by them; an object
	// of one that comes later is written to a file of its own.
	ended map[string]bool
	// revision is the resourceVersion of the list, which is known at its end, and count the number of objects.
	revision string
	count    int
}

func (l *lists) add(content map[string]any) error {
	made, err := encode(content)
	if err != nil {
		return err
	}
	l.count++
	if made.namespace == "" || l.ended[made.namespace] {
		if err := l.end(); err != nil {
			return err
		}
		return l.output.write(l.place(made.namespace, made.name).Path(), made.text)
	}
	if made.namespace != l.open {
		if err := l.end(); err != nil {
			return err
		}
		if err := l.begin(made.namespace, "items:\n"); err != nil {
			return err
		}
	}
	return l.print("- " + string(made.text))
}

func (l *lists) place(namespace, name string) layout.Place {
	return layout.Place{Group: l.resource.Group, Resource: l.resource.Name, Namespace: namespace, Name: name}
}

func (l *lists) begin(namespace, items string) error {
	if err := l.output.files.Begin(l.place(namespace, "").Path()); err != nil {
		return &writeError{err}
	}
	l.open = namespace
	return l.print(fmt.Sprintf("---\napiVersion: %s\n%s", l.served.version, items))
}

func (l *lists) print(text string) error {
	if _, err := l.output.files.Write([]byte(text)); err != nil {
		return &writeError{err}
	}
	return nil
}

// end completes the file which is open.
func (l *lists) end() error {
	if l.open == "" {
		return nil
	}
	if err := l.print(fmt.Sprintf("kind: %sList\nmetadata:\n  resourceVersion: %q\n", l.served.kind, l.revision)); err != nil {
		return err
	}
	l.ended[l.open], l.open = true, ""
	if err := l.output.files.End(); err != nil {
		return &writeError{err}
	}
	return nil
}

// finish completes the list. Of a namespace without objects there is an empty one.
func (l *lists) finish(revision string) error {
	l.revision = revision
	if err := l.end(); err != nil {
		return err
	}
	if l.namespace == "" {
		l.output.index.Complete = append(l.output.index.Complete, l.resource.String())
		if l.output.index.Objects == nil {
			l.output.index.Objects = map[string]int{}
		}
		l.output.index.Objects[l.resource.String()] = l.count
		return nil
	}
	if len(l.ended) > 0 {
		return nil
	}
	if err := l.begin(l.output.text(l.namespace), "items: []\n"); err != nil {
		return err
	}
	return l.end()
}

// abandon drops the file which is open: a list that lacks objects is none.
func (l *lists) abandon() error {
	if l.open == "" {
		return nil
	}
	l.open = ""
	if err := l.output.files.Drop(); err != nil {
		return &writeError{err}
	}
	return nil
}
