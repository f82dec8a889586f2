# Run by cpack before it packs: what Debian's policy wants of each package. Licence and changes in /usr/share/doc, which nobody
# wants elsewhere, so that they are no part of the install; and compressed manuals.
if(NOT CPACK_GENERATOR STREQUAL "DEB")
  return()
endif()

file(READ ${CPACK_RESOURCE_FILE_LICENSE} licence)
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  string(TOUPPER ${component} upper)
  set(package ${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
  set(documents ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/${component}/usr/share/doc/${package})
  file(WRITE ${documents}/copyright "memprof ${CPACK_PACKAGE_VERSION}\n\n${licence}")
  file(WRITE ${documents}/changelog "memprof (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium\n\n"
    "  * Version ${CPACK_PACKAGE_VERSION}; CHANGELOG.md of the sources says what is new.\n\n -- ${CPACK_PACKAGE_CONTACT}  ${date}\n")
  file(GLOB manuals ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/${component}/usr/share/man/man1/*.1)
  execute_process(COMMAND gzip -9nf ${documents}/changelog ${manuals} COMMAND_ERROR_IS_FATAL ANY)
  # Where Debian's zsh looks for what packages bring.
  set(zsh ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/${component}/usr/share/zsh)
  if(EXISTS ${zsh}/site-functions)
    file(RENAME ${zsh}/site-functions ${zsh}/vendor-completions)
  endif()
endforeach()
