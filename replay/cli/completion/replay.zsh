#compdef replay
# Completion of `replay` for zsh; put this into ~/.zshrc, after compinit:
#   eval "$(replay completion zsh)"
_replay() {
    local line
    local -a plain folders
    for line in "${(@f)$("${words[1]}" completion --words -- "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
        line=${line%%$'\t'*}
        case $line in
            '') ;;
            */) folders+=("$line") ;;
            *) plain+=("$line") ;;
        esac
    done
    if (( ! ${#plain} && ! ${#folders} )); then
        _files
        return
    fi
    (( ${#plain} )) && compadd -a plain
    (( ${#folders} )) && compadd -S '' -a folders
    return 0
}
compdef _replay replay
