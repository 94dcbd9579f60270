package terminal

import (
	"fmt"
	"strings"
)

// Screen is what a terminal shows of the text that was written to it, as tmux does: a screen that is erased from its
// first row on is kept in the scrollback.
type Screen struct {
	columns, row, column int
	rows                 []string
	// saved are the row and the column of the saved cursor.
	saved [2]int
	// Scrollback are the rows that have left the screen.
	Scrollback []string
}

// NewScreen is an empty screen of that size.
func NewScreen(columns, rows int) *Screen {
	return &Screen{columns: columns, rows: make([]string, rows)}
}

// Shown are the rows of the screen, without those that are empty at its end.
func (s *Screen) Shown() string { return strings.TrimRight(strings.Join(s.rows, "\n"), "\n") }

// Write implements io.Writer. A control sequence that is not known is an error.
func (s *Screen) Write(written []byte) (int, error) {
	text := string(written)
	for text != "" {
		switch {
		case strings.HasPrefix(text, "\x1b["):
			end := strings.IndexFunc(text[2:], func(r rune) bool { return r >= '@' && r <= '~' }) + 2
			if err := s.control(text[2:end], text[end]); err != nil {
				return 0, err
			}
			text = text[end+1:]
			continue
		case strings.HasPrefix(text, "\x1b7"):
			s.saved = [2]int{s.row, s.column}
			text = text[1:]
		case strings.HasPrefix(text, "\x1b8"):
			s.row, s.column = s.saved[0], s.saved[1]
			text = text[1:]
		case text[0] == '\n':
			s.newline()
		case text[0] == '\r':
			s.column = 0
		default:
			s.put(text[:1])
		}
		text = text[1:]
	}
	return len(written), nil
}

// newline moves to the first column of the next row, as a terminal does for a program.
func (s *Screen) newline() {
	s.column = 0
	if s.row++; s.row == len(s.rows) {
		s.row--
		s.Scrollback = append(s.Scrollback, s.rows[0])
		s.rows = append(s.rows[1:], "")
	}
}

// put replaces the character at the cursor.
func (s *Screen) put(character string) {
	if s.column == s.columns {
		s.newline()
	}
	row := s.rows[s.row] + strings.Repeat(" ", max(0, s.column+1-len(s.rows[s.row])))
	s.rows[s.row] = row[:s.column] + character + row[s.column+1:]
	s.column++
}

// control executes a control sequence (ECMA-48).
func (s *Screen) control(parameter string, final byte) error {
	count := 1
	if parameter != "" && parameter[0] != '?' {
		if _, err := fmt.Sscan(parameter, &count); err != nil {
			return err
		}
	}
	switch final {
	case 'A':
		s.row = max(0, s.row-count)
	case 'B':
		s.row = min(len(s.rows)-1, s.row+count)
	case 'J':
		s.eraseBelow()
	case 'K':
		s.rows[s.row] = s.rows[s.row][:min(s.column, len(s.rows[s.row]))]
	case 'm', 'h', 'l':
	default:
		return fmt.Errorf("the control sequence %q is not known", parameter+string(final))
	}
	return nil
}

// eraseBelow erases from the cursor to the end of the screen.
func (s *Screen) eraseBelow() {
	if s.row == 0 && s.column == 0 {
		s.Scrollback = append(s.Scrollback, s.rows...)
	}
	s.rows[s.row] = s.rows[s.row][:min(s.column, len(s.rows[s.row]))]
	clear(s.rows[s.row+1:])
}
