package yamltext

// How much of a text an error repeats, in characters: its beginning, which names a
// field, and its end, which says what is wrong with the value between them.
const (
	clipHead = 200
	clipTail = 400
)

// Clip shortens a text for an error to a few hundred characters, in its middle.
func Clip(text string) string {
	if len(text) <= clipHead+clipTail {
		return text
	}
	if runes := []rune(text); len(runes) > clipHead+clipTail {
		return string(runes[:clipHead]) + " … " + string(runes[len(runes)-clipTail:])
	}
	return text
}
