# Completion of `replay` for bash; put this into ~/.bashrc:
#   eval "$(replay completion bash)"
_replay() {
    local line
    COMPREPLY=()
    while IFS= read -r line; do
        [[ -n $line ]] && COMPREPLY+=("$(printf '%q' "${line%%$'\t'*}")")
    done < <("${COMP_WORDS[0]}" completion --words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    # A folder goes on: no blank after it.
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == */ ]]; then
        compopt -o nospace
    fi
}
complete -o default -F _replay replay
