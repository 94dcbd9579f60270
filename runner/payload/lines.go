package payload

import (
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v3"
)

// Lines are the lines of an object's fields in its file, from 1, by the
// path of the field, e.g. "spec.template.spec.containers[0].image". The path ""
// is the object.
type Lines map[string]int

// Of returns the line of the field, or of the closest field around it that the
// author wrote; 0 when unknown.
func (l Lines) Of(path string) int {
	for {
		if line, ok := l[path]; ok || path == "" {
			return line
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
}

// linesOf returns the lines of an object without aliases, whose document
// begins in the given line.
func linesOf(root *yaml.Node, begin int) Lines {
	lines := Lines{"": begin + root.Line - 1}
	lines.add("", root, begin)
	return lines
}

func (l Lines) add(path string, node *yaml.Node, begin int) {
	switch node.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			key := strings.TrimPrefix(path+"."+node.Content[i].Value, ".")
			l[key] = begin + node.Content[i].Line - 1
			l.add(key, node.Content[i+1], begin)
		}
	case yaml.SequenceNode:
		for i, item := range node.Content {
			key := path + "[" + strconv.Itoa(i) + "]"
			l[key] = begin + item.Line - 1
			l.add(key, item, begin)
		}
	case yaml.DocumentNode, yaml.ScalarNode, yaml.AliasNode:
		// A leaf has no fields.
	}
}
